"""What a user would build instead: mosquitto, Redis streams, NATS JetStream. Their servers run as child processes on
loopback, their Python clients in processes of their own, each used the way a sensible user would for speed."""
