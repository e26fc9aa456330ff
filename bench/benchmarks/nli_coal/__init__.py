"""NLI-CoAL: gender bias of NLI models in English, Japanese and Chinese."""
