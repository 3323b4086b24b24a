#!/bin/sh
# Calls a host function: NAME JSON. The two placeholders are filled in when it is set up.
exec @INTERPRETER@ @RUNTIME@ "$@"
