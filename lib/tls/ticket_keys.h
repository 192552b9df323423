/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that protect session tickets (RFC 8446 4.6.1, in the construction of RFC 5077 4):
 * AES-256-CBC and HMAC-SHA-256. All lcores and workers share one set, so a client may resume on any
 * lcore.
 *
 * The newest key seals. It and the keys before it open. A ticket can be used for
 * NJ_TLS_TICKET_LIFE_S, for which its key is kept whenever in its period it was sealed. RFC 8446
 * 4.6.1 permits seven days.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NJ_TLS_TICKET_KEYS       3u
#define NJ_TLS_TICKET_NAME_BYTES 16u
#define NJ_TLS_TICKET_PERIOD_S   (8u * 3600u) /* between rotations */
#define NJ_TLS_TICKET_LIFE_S     ((NJ_TLS_TICKET_KEYS - 1u) * NJ_TLS_TICKET_PERIOD_S)

struct nj_tls_ticket_key {
    uint8_t name[NJ_TLS_TICKET_NAME_BYTES]; /* sent in the clear, with each ticket */
    uint8_t aes[32], hmac[32];
};

struct nj_tls_ticket_keys {
    pthread_mutex_t lock;
    uint32_t n; /* valid keys, newest first */
    struct nj_tls_ticket_key key[NJ_TLS_TICKET_KEYS];
};

/* `random` has 80 random bytes, and is wiped by the caller. */
void nj_tls_ticket_keys_init(struct nj_tls_ticket_keys *k,
                             const uint8_t random[sizeof(struct nj_tls_ticket_key)]);
/* Make a new key from `random`, and forget the oldest one. Any thread. */
void nj_tls_ticket_keys_rotate(struct nj_tls_ticket_keys *k,
                               const uint8_t random[sizeof(struct nj_tls_ticket_key)]);
/* Copy the newest key. Any thread. The caller wipes the copy. */
void nj_tls_ticket_keys_newest(struct nj_tls_ticket_keys *k, struct nj_tls_ticket_key *out);
/* Copy the key of this name. Returns false if it is unknown. Any thread. The caller wipes the copy.
 */
bool nj_tls_ticket_keys_find(struct nj_tls_ticket_keys *k, const uint8_t *name,
                             struct nj_tls_ticket_key *out);
/* Overwrite all keys. No other thread uses them. */
void nj_tls_ticket_keys_wipe(struct nj_tls_ticket_keys *k);
