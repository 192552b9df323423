/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates with their keys for tests, in files of a temporary folder. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "base/assert.h"

struct test_cert {
    char cert[96], key[96]; /* paths */
    X509 *x;
    EVP_PKEY *pkey;
};

static inline void write_pem(struct test_cert *c)
{
    FILE *f = fopen(c->cert, "we");
    NJ_CHECK(f && PEM_write_X509(f, c->x) == 1);
    fclose(f);
    f = fopen(c->key, "we");
    NJ_CHECK(f && PEM_write_PrivateKey(f, c->pkey, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(f);
}

static inline void add_extension(X509 *x, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    NJ_CHECK(e && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
}

/* Makes a certificate for `name` in folder/stem.crt and .key. `rsa`: RSA of 2,048 bits, else ECDSA
 * with P-256. `by` signs it; NULL: it signs itself and is an authority. */
static inline void make_cert(struct test_cert *c, const char *folder, const char *stem,
                             const char *name, bool rsa, const struct test_cert *by)
{
    char names[128];

    snprintf(c->cert, sizeof c->cert, "%s/%s.crt", folder, stem);
    snprintf(c->key, sizeof c->key, "%s/%s.key", folder, stem);
    snprintf(names, sizeof names, "DNS:%s", name);
    c->pkey = rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    c->x = X509_new();
    NJ_CHECK(c->pkey && c->x);
    X509_set_version(c->x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c->x), 1 + rand() % 1000000);
    X509_gmtime_adj(X509_getm_notBefore(c->x), -86400);
    X509_gmtime_adj(X509_getm_notAfter(c->x), 10 * 86400);
    X509_set_pubkey(c->x, c->pkey);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c->x), "CN", MBSTRING_ASC,
                               (const unsigned char *)stem, -1, -1, 0);
    X509_set_issuer_name(c->x, X509_get_subject_name(by ? by->x : c->x));
    add_extension(c->x, NID_subject_alt_name, names);
    add_extension(c->x, NID_basic_constraints, by ? "CA:FALSE" : "critical,CA:TRUE");
    NJ_CHECK(X509_sign(c->x, by ? by->pkey : c->pkey, EVP_sha256()) > 0);
    write_pem(c);
}

static inline void free_cert(struct test_cert *c)
{
    unlink(c->cert);
    unlink(c->key);
    X509_free(c->x);
    EVP_PKEY_free(c->pkey);
}
