"""Parts of every HTTP server here: bounds on connections, the names it answers to, the token for reading."""
