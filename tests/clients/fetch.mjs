// SPDX-License-Identifier: BSD-3-Clause
// CA URL NAME...: fetches all names at once on one connection, and prints NAME SHA256 PROTOCOL.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";

const [ca, url, ...names] = process.argv.slice(2);
const session = connect(url, { ca: readFileSync(ca) });

function fetched(name) {
    return new Promise((resolve, reject) => {
        const request = session.request({ ":path": "/" + name });
        const sum = createHash("sha256");
        request.on("response", (head) => {
            if (head[":status"] !== 200)
                reject(new Error(`${name}: ${head[":status"]}`));
        });
        request.on("data", (data) => sum.update(data));
        request.on("end", () => resolve(`${name} ${sum.digest("hex")} ${session.alpnProtocol}`));
        request.on("error", reject);
    });
}

for (const line of await Promise.all(names.map(fetched)))
    console.log(line);
session.close();
