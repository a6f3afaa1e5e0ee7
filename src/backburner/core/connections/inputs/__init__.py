"""What servers ask of users during calls: which requests are passed on, and the answers."""
