import sys

from wheels import Image, Wheel, add_compiled, pack

image = Image(sys.modules["_fenced"]._ask)
for name in ("choose.py", "wheels.py"):
    with open(name, "rb") as file:
        source = file.read()
    image.add(name, [source])
    add_compiled(image, name, source)
pack([Wheel("packaging.whl", open("packaging.whl", "rb"))], image)
image.finish()
