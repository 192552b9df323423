/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/rss_key.h"

#include <string.h>
#include <sys/random.h>

/* One of five or so spreads: that none of so many does has a probability below 10^-90. */
#define TRIES 1000u

static int digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return !at ? -1 : at - digits < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

bool nj_rss_key_read(const char *text, struct nj_rss_key *key)
{
    static const struct nj_rss_key none;

    for (unsigned i = 0; i < NJ_RSS_KEY_BYTES; i++) {
        text += i > 0 && *text == ':';
        int high = digit(text[0]), low = high < 0 ? -1 : digit(text[1]);
        if (low < 0)
            return false;
        key->b[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return *text == '\0' && memcmp(key, &none, sizeof none) != 0;
}

bool nj_rss_key_draw(struct nj_rss_key *key)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (getrandom(key, sizeof *key, 0) != (ssize_t)sizeof *key)
            return false;
        if (nj_rss_key_spreads(key))
            return true;
    }
    return false;
}
