/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tokens of the management listener, as their hashes: no token stays in memory. Any thread may
 * read files; who compares and who replaces tokens take turns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/secret_hash.h"

#define NJ_TOKEN_BYTES_MIN 16u
#define NJ_TOKEN_BYTES_MAX 512u

/* What a request may do. */
enum nj_mgmt_right {
    NJ_MGMT_NOTHING,
    NJ_MGMT_READ,
    NJ_MGMT_WRITE, /* and read */
};

struct nj_mgmt_token {
    bool is_set;
    struct nj_secret_hash hash;
};

struct nj_mgmt_tokens {
    struct nj_mgmt_token read, write;
};

/* Read both files; NULL: no such token. A file is a line of NJ_TOKEN_BYTES_MIN to
 * NJ_TOKEN_BYTES_MAX characters of ASCII without spaces, to which other users have no rights.
 * Returns 0, or -1 with option, file, problem and remedy in `why`. May block. */
int nj_mgmt_tokens_read(const char *write_file, const char *read_file, struct nj_mgmt_tokens *out,
                        char *why, size_t why_bytes);

/* Set a token. False: its length or a character is not allowed. */
bool nj__mgmt_token_set(struct nj_mgmt_token *t, const char *text, size_t n_text);

/* The right of who sends this value of Authorization (RFC 6750 2.1); NULL: none. The time does not
 * depend on how much of a token is right. */
enum nj_mgmt_right nj__mgmt_tokens_right(const struct nj_mgmt_tokens *t, const char *authorization);
