"""An OpenAI-compatible model server of our own on loopback: see `server.LoopbackModel`."""
