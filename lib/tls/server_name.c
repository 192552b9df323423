/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the certificate for a server name (RFC 6066 3): by the site that has the name, then by
 * the names in the certificates of its set. */
#include <string.h>

#include <openssl/x509v3.h>

#include "tls/handshake_internal.h"

const struct nj__tls_set *nj__tls_find_set(const struct nj_tls_server_context *c, uint64_t id)
{
    uint32_t i = 0;

    while (i < c->n_sets && c->set[i].id != id)
        i++;
    return &c->set[i < c->n_sets ? i : 0];
}

const struct nj__tls_identity *nj__tls_choose(const struct nj_tls_server_context *c,
                                              const char *name, struct nj_site_identity *of,
                                              bool *is_known)
{
    const struct nj_str host = {name, (uint32_t)strlen(name)};
    const struct nj_site_rules *rules =
        c->sites ? nj_sites_find(c->sites, host, (struct nj_str){0}) : NULL;

    *of = rules ? rules->identity : (struct nj_site_identity){0, c->set[0].id};
    *is_known = true;
    const struct nj__tls_set *set = nj__tls_find_set(c, of->files);
    for (uint32_t i = set->first; i < set->first + set->n && host.n_bytes > 0; i++)
        if (X509_check_host(c->identity[i].cert, name, host.n_bytes, 0, NULL) == 1)
            return &c->identity[i];
    *is_known = false;
    return &c->identity[set->first];
}
