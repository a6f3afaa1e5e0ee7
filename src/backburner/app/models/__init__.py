"""The setup of models, for the command line and the API: test, store, choose and remove."""
