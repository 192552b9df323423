/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds and rotates the keys of session tickets. Follows RFC 5077 4 and 5.5. */
#include "tls/ticket_keys.h"

#include <string.h>

void nj_tls_ticket_keys_init(struct nj_tls_ticket_keys *k,
                             const uint8_t random[sizeof(struct nj_tls_ticket_key)])
{
    memset(k, 0, sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    nj_tls_ticket_keys_rotate(k, random);
}

void nj_tls_ticket_keys_rotate(struct nj_tls_ticket_keys *k,
                               const uint8_t random[sizeof(struct nj_tls_ticket_key)])
{
    pthread_mutex_lock(&k->lock);
    memmove(&k->key[1], &k->key[0], sizeof k->key - sizeof k->key[0]);
    memcpy(&k->key[0], random, sizeof k->key[0]);
    k->n += k->n < NJ_TLS_TICKET_KEYS;
    pthread_mutex_unlock(&k->lock);
}

void nj_tls_ticket_keys_newest(struct nj_tls_ticket_keys *k, struct nj_tls_ticket_key *out)
{
    pthread_mutex_lock(&k->lock);
    *out = k->key[0];
    pthread_mutex_unlock(&k->lock);
}

bool nj_tls_ticket_keys_find(struct nj_tls_ticket_keys *k, const uint8_t *name,
                             struct nj_tls_ticket_key *out)
{
    bool found = false;

    pthread_mutex_lock(&k->lock);
    for (uint32_t i = 0; i < k->n && !found; i++) {
        if (memcmp(k->key[i].name, name, NJ_TLS_TICKET_NAME_BYTES) != 0)
            continue;
        *out = k->key[i];
        found = true;
    }
    pthread_mutex_unlock(&k->lock);
    return found;
}

void nj_tls_ticket_keys_wipe(struct nj_tls_ticket_keys *k)
{
    explicit_bzero(k->key, sizeof k->key);
    k->n = 0;
    pthread_mutex_destroy(&k->lock);
}
