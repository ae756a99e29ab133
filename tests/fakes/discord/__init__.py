"""A Discord of our own on loopback: see `server.LoopbackDiscord`."""
