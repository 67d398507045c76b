"""What every HTTP server here begins with: bounds on connections, names it answers to, the token to read."""
