/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the RSS key of --rss-key, or generates a random one with getrandom(2). */
#include "dpdk/rss_key.h"

#include <string.h>
#include <sys/random.h>

#include "base/str.h"

/* About one key in five spreads well: the probability that 1000 tries fail is below 10^-90. */
#define TRIES 1000u

bool nj_rss_key_parse(const char *text, struct nj_rss_key *key)
{
    static const struct nj_rss_key none;

    for (unsigned i = 0; i < NJ_RSS_KEY_BYTES; i++) {
        text += i > 0 && *text == ':';
        int high = nj_hex_value(text[0]), low = high >= 0 ? nj_hex_value(text[1]) : -1;
        if (low < 0)
            return false;
        key->b[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return *text == '\0' && memcmp(key, &none, sizeof none) != 0;
}

bool nj_rss_key_generate(struct nj_rss_key *key)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (getrandom(key, sizeof *key, 0) != (ssize_t)sizeof *key)
            return false;
        if (nj_rss_key_spreads(key))
            return true;
    }
    return false;
}
