# SPDX-License-Identifier: BSD-3-Clause
"""
A page of 100 assets: 60 images, 20 style sheets and 20 scripts. Each paints one cell of a grid of
10 by 10 in a colour of its own, so that the page shows which of them have been loaded.
"""
import os
import struct
import zlib

N_ASSETS, N_IMAGES, N_STYLES = 100, 60, 20
CELL_PIXELS = 64

# Promises {cell: colour}; of images from a canvas. Colours are [red, green, blue].
CELLS_SCRIPT = """(() => {
    const cells = [...document.querySelectorAll("#grid > *")];
    const canvas = document.createElement("canvas").getContext("2d");
    return cells.map((cell) => {
        if (cell.tagName !== "IMG")
            return getComputedStyle(cell).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number);
        canvas.drawImage(cell, 0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    });
})()"""


def colour(i):
    """Any two cells differ."""
    return (55 + 20 * (i % 10), 55 + 20 * (i // 10), 255 - 2 * i)


def png(rgb, n_pixels):
    """A square picture of one colour."""
    def chunk(kind, data):
        check = struct.pack("!I", zlib.crc32(kind + data))
        return struct.pack("!I", len(data)) + kind + data + check
    row = b"\0" + bytes(rgb) * n_pixels
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack("!IIBBBBB", n_pixels, n_pixels, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(row * n_pixels)) + chunk(b"IEND", b""))


def assets():
    """{file: (tag in the head, element of the grid, bytes)}, in the order of cells."""
    made = {}
    for i in range(N_ASSETS):
        r, g, b = colour(i)
        if i < N_IMAGES:
            made[f"{i}.png"] = ("", f'<img src="{i}.png" alt="{i}">', png(colour(i), CELL_PIXELS))
        elif i < N_IMAGES + N_STYLES:
            made[f"{i}.css"] = (f'<link rel="stylesheet" href="{i}.css">', f'<p id="c{i}">css</p>',
                                f"#c{i} {{ background: rgb({r}, {g}, {b}); }}\n".encode())
        else:
            made[f"{i}.js"] = (
                f'<script src="{i}.js" defer></script>', f'<p id="c{i}">js</p>',
                f'document.getElementById("c{i}").style.background = "rgb({r}, {g}, {b})";\n'
                .encode())
    return made


def write_page(folder):
    """Writes index.html and the assets. Returns the names of all these files."""
    made = assets()
    for name, (_, _, data) in made.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    head = "\n".join(tag for tag, _, _ in made.values() if tag)
    grid = "\n".join(element for _, element, _ in made.values())
    with open(os.path.join(folder, "index.html"), "w") as f:
        f.write(f"""<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>100 assets</title><link rel="icon" href="data:,">
<style>
body {{ margin: 0; font: 16px sans-serif; }}
#grid {{ display: grid; grid-template-columns: repeat(10, {CELL_PIXELS}px);
        gap: 8px; margin: 40px; }}
#grid > * {{ width: {CELL_PIXELS}px; height: {CELL_PIXELS}px; margin: 0;
            line-height: {CELL_PIXELS}px; text-align: center; }}
</style>
{head}
</head><body><div id="grid">
{grid}
</div></body></html>
""")
    return ["index.html", *made]
