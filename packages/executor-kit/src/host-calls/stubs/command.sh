#!/bin/sh
# Calls a function of the host: NAME JSON. The two words in front are put in when it is set up.
exec @INTERPRETER@ @RUNTIME@ "$@"
