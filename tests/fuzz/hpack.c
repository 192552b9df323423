/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: header blocks of a peer, for our decoder and for nghttp2's. The first byte selects a
 * failing allocation (0: none). Blocks follow, each after its length in two bytes, alternately for
 * two connections of one core.
 */
#include "support/hpack_both.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Exactly as long as the block, so that a sanitizer detects an overread. It lives as long as its
 * strings. */
static int block(struct both *b, const uint8_t *data, size_t n_bytes)
{
    uint8_t *copy = malloc(n_bytes ? n_bytes : 1);
    memcpy(copy, data, n_bytes);
    int rv = both_block(b, copy, n_bytes);
    free(copy);
    return rv;
}

static void blocks(struct both *b, const uint8_t *data, size_t n_bytes)
{
    unsigned turn = 0;
    while (n_bytes >= 2) {
        size_t n = data[0] | (size_t)data[1] << 8;
        n = n < n_bytes - 2 ? n : n_bytes - 2;
        if (!b[turn].broken)
            (void)block(&b[turn], data + 2, n);
        data += 2 + n;
        n_bytes -= 2 + n;
        turn ^= 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct nj_alloc alloc;
    static struct both b[2];
    if (n_bytes < 1 || n_bytes > 60000) /* nghttp2 accepts strings of 64 KiB at most */
        return 0;
    nj_alloc_init(&alloc, SIZE_MAX);
    struct nj__hpack_shared *shared = nj__hpack_shared_new(&alloc, &hpack_key);
    size_t n_shared = alloc.bytes_used;
    NJ_CHECK(both_init(&b[0], shared));
    NJ_CHECK(both_init(&b[1], shared));
    alloc.fail_countdown = data[0];
    blocks(b, data + 1, n_bytes - 1);
    both_fini(&b[0]);
    both_fini(&b[1]);
    NJ_CHECK(nj__hpack_shared_free_scratch(shared) == n_shared && alloc.bytes_used == n_shared);
    nj__hpack_shared_free(shared);
    NJ_CHECK(alloc.bytes_used == 0);
    nj_alloc_fini(&alloc);
    return 0;
}
