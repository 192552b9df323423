# SPDX-License-Identifier: BSD-3-Clause
"""CA URL NAME...: fetches all names at once on one connection, and prints NAME SHA256 PROTOCOL."""
import asyncio
import hashlib
import sys

import httpx


async def fetch(client, name):
    response = await client.get(name)
    response.raise_for_status()
    protocol = {"HTTP/2": "h2"}.get(response.http_version, response.http_version)
    print(name, hashlib.sha256(response.content).hexdigest(), protocol)


async def main(ca, url, *names):
    async with httpx.AsyncClient(http1=False, http2=True, verify=ca, base_url=url,
                                 timeout=60) as client:
        await asyncio.gather(*(fetch(client, name) for name in names))


asyncio.run(main(*sys.argv[1:]))
