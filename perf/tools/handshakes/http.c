/* SPDX-License-Identifier: BSD-3-Clause */
#include "http.h"

#include <string.h>

#include "base/types.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

uint32_t http_begin(uint8_t out[HTTP_OUT_BYTES], bool request, bool tls)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const uint8_t settings[9] = {0, 0, 0, SETTINGS};
    /* RFC 7541 appendix A: :method GET, :scheme, :path /, and :authority as a literal. */
    const uint8_t get[] = {0,
                           0,
                           10,
                           HEADERS,
                           END_STREAM | END_HEADERS,
                           0,
                           0,
                           0,
                           1,
                           0x82,
                           tls ? 0x87 : 0x86,
                           0x84,
                           0x01,
                           5,
                           'b',
                           'e',
                           'n',
                           'c',
                           'h'};
    uint32_t n = sizeof preface - 1;

    memcpy(out, preface, n);
    memcpy(out + n, settings, sizeof settings);
    n += sizeof settings;
    if (!request)
        return n;
    memcpy(out + n, get, sizeof get);
    return n + sizeof get;
}

static void on_frame(struct http_in *h)
{
    uint8_t type = h->head[3], flags = h->head[4];

    h->settings |= type == SETTINGS && !(flags & 1);
    h->failed |= type == GOAWAY || type == RST_STREAM;
    h->response |= (type == DATA || type == HEADERS) && (flags & END_STREAM);
}

void http_input(struct http_in *h, const uint8_t *p, uint32_t n)
{
    while (n > 0) {
        if (h->n_skip > 0) {
            uint32_t part = nj_min_u32(n, h->n_skip);
            p += part;
            n -= part;
            h->n_skip -= part;
            continue;
        }
        h->head[h->n_head++] = *p++;
        n--;
        if (h->n_head < sizeof h->head)
            continue;
        h->n_head = 0;
        h->n_skip = (uint32_t)h->head[0] << 16 | (uint32_t)h->head[1] << 8 | h->head[2];
        on_frame(h);
    }
}
