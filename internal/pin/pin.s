// This file lets pin.go declare functions whose bodies are the runtime's.
