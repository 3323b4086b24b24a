import json
import sys

from choose import Search, Sources, parse
from wheels import Image, Refused, describe, pack

ask = sys.modules["_fenced"]._ask
try:
    plan = json.load(sys.stdin)
    sources = Sources(ask, plan["folder"], plan["index"])
    chosen = Search(sources).solve(parse(plan["install"]))
    answer, _ = ask({"op": "packed", "wheels": sorted(each.identity for each in chosen)})
    if not answer["done"]:
        image = Image(ask)
        pack([sources.wheel(each) for each in chosen], image)
        image.finish()
except Refused as error:
    sys.exit(str(error))
except Exception as error:
    sys.exit(f"The packages could not be read: {describe(error)}")
