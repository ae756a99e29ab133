"""The loopback servers shown at work, with the real discord.py and openai clients."""
