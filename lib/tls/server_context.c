/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads certificates and keys, and configures libssl for TLS 1.3 only (RFC 8446). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/compiler.h"
#include "base/open_error.h"
#include "base/set_error.h"
#include "tls/handshake_internal.h"

#define OCSP_BYTES_MAX   (64u * 1024u)
#define NO_EXPIRY        INT64_MAX
#define EXT_RECORD_LIMIT 28u /* RFC 8449 6 */

static const char suites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* The reason that OpenSSL gave first. */
static const char *openssl_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    return reason ? reason : "unknown error";
}

static int cannot_use(const char *path, const char *as, const char *problem, char *why,
                      size_t n_why)
{
    return nj_set_error(why, n_why, "%s: cannot be used as %s: %s", path, as, problem);
}

/* OpenSSL's message for a file that cannot be opened names neither errno nor the file. */
static int check_readable(const char *path, const char *as, char *why, size_t n_why)
{
    FILE *f = fopen(path, "re");

    if (!f)
        return cannot_use(path, as, nj_open_error(path, errno), why, n_why);
    fclose(f);
    return 0;
}

/* No password is asked for: a server has nobody to answer. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
    return -1;
}

/* Owned by the caller. NULL: cannot be read (errno), or OpenSSL has the reason (errno is 0). */
static EVP_PKEY *load_key(const char *path)
{
    uint32_t n;
    uint8_t *bytes = nj__tls_read_private(path, &n);
    EVP_PKEY *key = NULL;

    if (!bytes)
        return NULL;
    BIO *bio = BIO_new_mem_buf(bytes, (int)n);
    if (bio)
        key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    nj__tls_wipe_private(bytes);
    errno = 0;
    return key;
}

/* The likely cause, or the reason that OpenSSL gave first. */
static const char *why_unusable(const char *path, bool is_key)
{
    const char *guess = nj__tls_guess_file(path, is_key);

    return guess ? guess : openssl_reason();
}

static int load_pair(SSL_CTX *ctx, const struct nj_tls_identity_files *files, char *why,
                     size_t n_why)
{
    if (check_readable(files->cert, "certificate", why, n_why) != 0 ||
        check_readable(files->key, "private key", why, n_why) != 0)
        return -1;
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1)
        return cannot_use(files->cert, "certificate chain in PEM", why_unusable(files->cert, false),
                          why, n_why);
    EVP_PKEY *key = load_key(files->key);
    if (!key)
        return cannot_use(files->key, "private key in PEM without a password",
                          errno ? nj_open_error(files->key, errno) : why_unusable(files->key, true),
                          why, n_why);
    bool fits = SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    if (!fits)
        return nj_set_error(why, n_why, "%s: is not the private key of the certificate in %s",
                            files->key, files->cert);
    return 0;
}

static int set_client_ca(SSL_CTX *ctx, const struct nj_tls_set *of, char *why, size_t n_why)
{
    STACK_OF(X509_NAME) * names;

    if (!of->client_ca)
        return 0;
    if (check_readable(of->client_ca, "authority of client certificates", why, n_why) != 0)
        return -1;
    ERR_clear_error();
    if (SSL_CTX_load_verify_file(ctx, of->client_ca) != 1 ||
        !(names = SSL_load_client_CA_file(of->client_ca)))
        return cannot_use(of->client_ca, "authority of client certificates in PEM",
                          openssl_reason(), why, n_why);
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(
        ctx, SSL_VERIFY_PEER | (of->client_cert_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        NULL);
    return 0;
}

/* libssl resumes no session of another session context, so one with the same authorities only. */
static SSL_CTX *new_ctx(struct nj_tls_server_context *c, uint64_t set_id)
{
    unsigned char session_context[16] = "nightjar";
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    if (!ctx)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets hold the state */
    memcpy(session_context + 8, &set_id, sizeof set_id);
    SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context);
    SSL_CTX_set_timeout(ctx, NJ_TLS_TICKET_LIFE_S);
    SSL_CTX_set_num_tickets(ctx, c->tickets ? 1 : 0);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_keylog_callback(ctx, nj__tls_on_secret);
    SSL_CTX_set_client_hello_cb(ctx, nj__tls_on_client_hello, c);
    SSL_CTX_set_alpn_select_cb(ctx, nj__tls_on_alpn, c);
    SSL_CTX_set_tlsext_servername_callback(ctx, nj__tls_on_server_name);
    SSL_CTX_set_tlsext_status_cb(ctx, nj__tls_on_ocsp);
    SSL_CTX_set_tlsext_status_arg(ctx, c);
    if (c->tickets) {
        SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, nj__tls_on_ticket);
        SSL_CTX_set_session_ticket_cb(ctx, NULL, nj__tls_on_opened_ticket, NULL);
    }
    bool ok = SSL_CTX_set_ciphersuites(ctx, suites) == 1 &&
              SSL_CTX_add_custom_ext(
                  ctx, EXT_RECORD_LIMIT,
                  SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS | SSL_EXT_TLS1_3_ONLY,
                  nj__tls_add_record_limit, NULL, NULL, nj__tls_parse_record_limit, NULL) == 1;
    if (ok)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

static bool is_same_name(const GENERAL_NAME *a, const GENERAL_NAME *b)
{
    if (a->type != b->type)
        return false;
    if (a->type != GEN_DNS)
        return GENERAL_NAME_cmp((GENERAL_NAME *)(uintptr_t)a, (GENERAL_NAME *)(uintptr_t)b) == 0;
    int n = ASN1_STRING_length(a->d.dNSName);
    return n == ASN1_STRING_length(b->d.dNSName) &&
           strncasecmp((const char *)ASN1_STRING_get0_data(a->d.dNSName),
                       (const char *)ASN1_STRING_get0_data(b->d.dNSName), (size_t)n) == 0;
}

static bool has_all_names(const GENERAL_NAMES *names, const GENERAL_NAMES *wanted)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(wanted); i++) {
        int k = 0, n = sk_GENERAL_NAME_num(names);
        while (k < n &&
               !is_same_name(sk_GENERAL_NAME_value(names, k), sk_GENERAL_NAME_value(wanted, i)))
            k++;
        if (k == n)
            return false;
    }
    return true;
}

/* Do both certificates have the same set of names (RFC 5280 4.2.1.6), in any order? Not if they
 * have none. */
static bool have_same_names(const X509 *a, const X509 *b)
{
    GENERAL_NAMES *of_a = X509_get_ext_d2i(a, NID_subject_alt_name, NULL, NULL),
                  *of_b = X509_get_ext_d2i(b, NID_subject_alt_name, NULL, NULL);
    bool same = of_a && of_b && sk_GENERAL_NAME_num(of_a) > 0 && has_all_names(of_a, of_b) &&
                has_all_names(of_b, of_a);

    GENERAL_NAMES_free(of_a);
    GENERAL_NAMES_free(of_b);
    return same;
}

static int key_type(const X509 *cert)
{
    return EVP_PKEY_get_base_id(X509_get0_pubkey(cert));
}

/* An earlier identity of the set for the same names whose key is of another type: libssl then
 * chooses by the client's signature algorithms. NULL: none. */
static struct nj__tls_identity *partner_of(const struct nj_tls_server_context *c,
                                           const struct nj__tls_set *set, const X509 *cert)
{
    for (uint32_t i = set->first; i < c->n_identities; i++) {
        struct nj__tls_identity *at = &c->identity[i];
        if (key_type(at->cert) != key_type(cert) && have_same_names(at->cert, cert))
            return at;
    }
    return NULL;
}

/* --- validity ------------------------------------------------------------------------------- */

static bool has_dates(const struct nj_tls_server_context *c, const char *path, int kind)
{
    uint32_t i = 0;

    while (i < c->n_dates && ((int)c->dates[i].kind != kind || strcmp(c->dates[i].path, path) != 0))
        i++;
    return i < c->n_dates;
}

static struct nj__tls_dates *add_dates(struct nj_tls_server_context *c, const char *path, int kind,
                                       char *why, size_t n_why)
{
    struct nj__tls_dates *d = &c->dates[c->n_dates];

    *d = (struct nj__tls_dates){
        .path = strdup(path), .kind = kind, .from_s = INT64_MIN, .until_s = INT64_MAX};
    if (!d->path) {
        nj_set_error(why, n_why, "out of memory");
        return NULL;
    }
    c->n_dates++;
    return d;
}

static int add_dates_of_pair(struct nj_tls_server_context *c, SSL_CTX *ctx, const char *path,
                             char *why, size_t n_why)
{
    struct nj__tls_dates *d = add_dates(c, path, NJ__TLS_DATES_OWN, why, n_why);
    STACK_OF(X509) *chain = NULL;

    if (!d)
        return -1;
    nj__tls_dates_narrow(d, SSL_CTX_get0_certificate(ctx), 1);
    SSL_CTX_get0_chain_certs(ctx, &chain);
    for (int i = 0; chain && i < sk_X509_num(chain); i++)
        nj__tls_dates_narrow(d, sk_X509_value(chain, i), (uint32_t)i + 2);
    return 0;
}

static int add_dates_of_client_ca(struct nj_tls_server_context *c, const char *path, char *why,
                                  size_t n_why)
{
    struct nj__tls_dates *d;
    X509 *cert;
    uint32_t n = 0;

    if (!path || has_dates(c, path, NJ__TLS_DATES_CLIENT_CA))
        return 0;
    if (!(d = add_dates(c, path, NJ__TLS_DATES_CLIENT_CA, why, n_why)))
        return -1;
    FILE *f = fopen(path, "re");
    for (; f && (cert = PEM_read_X509(f, NULL, no_password, NULL)); X509_free(cert))
        nj__tls_dates_narrow(d, cert, ++n);
    ERR_clear_error(); /* the end of the file counts as one */
    if (f)
        fclose(f);
    return 0;
}

/* --- certificates --------------------------------------------------------------------------- */

static int add_identity(struct nj_tls_server_context *c, const struct nj_tls_set *of,
                        const struct nj_tls_identity_files *files, char *why, size_t n_why)
{
    struct nj__tls_set *set = &c->set[c->n_sets];
    SSL_CTX *ctx = new_ctx(c, set->id);

    if (!ctx)
        return nj_set_error(why, n_why, "cannot start OpenSSL: %s", openssl_reason());
    if (load_pair(ctx, files, why, n_why) != 0 || set_client_ca(ctx, of, why, n_why) != 0) {
        SSL_CTX_free(ctx);
        return -1;
    }
    struct nj__tls_identity *partner = partner_of(c, set, SSL_CTX_get0_certificate(ctx));
    if (partner) {
        SSL_CTX_free(ctx);
        ctx = partner->ctx;
        if (load_pair(ctx, files, why, n_why) != 0)
            return -1;
    } else {
        c->identity[c->n_identities++] =
            (struct nj__tls_identity){ctx, SSL_CTX_get0_certificate(ctx)};
        set->n++;
    }
    if (has_dates(c, files->cert, NJ__TLS_DATES_OWN))
        return 0;
    X509 *cert = SSL_CTX_get0_certificate(ctx);
    X509_up_ref(cert); /* a later pair of the same type replaces it in `ctx` */
    c->cert[c->n_certs++] = cert;
    return add_dates_of_pair(c, ctx, files->cert, why, n_why);
}

static int add_set(struct nj_tls_server_context *c, const struct nj_tls_set *of, char *why,
                   size_t n_why)
{
    if (c->n_sets > 0 && nj__tls_find_set(c, of->id)->id == of->id)
        return 0;
    c->set[c->n_sets] = (struct nj__tls_set){.id = of->id, .first = c->n_identities};
    for (uint32_t i = 0; i < of->n_identities; i++)
        if (add_identity(c, of, &of->identities[i], why, n_why) != 0)
            return -1;
    c->n_sets++;
    return add_dates_of_client_ca(c, of->client_ca, why, n_why);
}

/* --- OCSP responses (RFC 6960) ------------------------------------------------------------- */

static bool is_about(const OCSP_SINGLERESP *single, const X509 *cert)
{
    ASN1_OCTET_STRING *name_hash;
    ASN1_OBJECT *hash;
    ASN1_INTEGER *serial;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    /* The functions below do not change the identifier, though their prototypes permit it. */
    OCSP_CERTID *id = (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single);

    if (OCSP_id_get0_info(&name_hash, &hash, NULL, &serial, id) != 1)
        return false;
    const EVP_MD *md = EVP_get_digestbyobj(hash);
    return md && X509_NAME_digest(X509_get_issuer_name(cert), md, digest, &n) == 1 &&
           (int)n == ASN1_STRING_length(name_hash) &&
           memcmp(digest, ASN1_STRING_get0_data(name_hash), n) == 0 &&
           ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(cert)) == 0;
}

/* UNIX time until which the response may be used, or NO_EXPIRY. */
static int64_t expiry(OCSP_SINGLERESP *single, int64_t *from_s)
{
    ASN1_GENERALIZEDTIME *this = NULL, *next = NULL;

    OCSP_single_get0_status(single, NULL, NULL, &this, &next);
    *from_s = this ? nj__tls_unix_time(this) : 0;
    return next ? nj__tls_unix_time(next) : NO_EXPIRY;
}

/* Finds the certificate that the response is about. */
static bool match_ocsp(const struct nj_tls_server_context *c, struct nj__tls_ocsp *o,
                       int64_t *from_s)
{
    const uint8_t *p = o->bytes;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &p, (long)o->n_bytes);
    OCSP_BASICRESP *basic = response ? OCSP_response_get1_basic(response) : NULL;

    for (int i = 0; basic && !o->cert && i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        for (uint32_t k = 0; k < c->n_certs && !o->cert; k++)
            if (is_about(single, c->cert[k]))
                o->cert = c->cert[k];
        o->expires_s = expiry(single, from_s);
    }
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return basic != NULL;
}

static int add_ocsp(struct nj_tls_server_context *c, const char *path, char *why, size_t n_why)
{
    struct nj__tls_ocsp *o = &c->ocsp[c->n_ocsp];
    int64_t from_s = 0;
    FILE *f = fopen(path, "re");

    if (!f)
        return cannot_use(path, "OCSP response", nj_open_error(path, errno), why, n_why);
    o->bytes = malloc(OCSP_BYTES_MAX);
    o->n_bytes = o->bytes ? (uint32_t)fread(o->bytes, 1, OCSP_BYTES_MAX, f) : 0;
    fclose(f);
    c->n_ocsp++;
    ERR_clear_error();
    if (o->n_bytes == 0 || o->n_bytes == OCSP_BYTES_MAX || !match_ocsp(c, o, &from_s))
        return cannot_use(path, "OCSP response",
                          "not a successful response in DER of less than 64 KiB", why, n_why);
    if (!o->cert)
        return cannot_use(path, "OCSP response", "it is not about a certificate of this server",
                          why, n_why);
    /* Its authority always has newer information (RFC 6960 4.2.2.1), which a file never gets. */
    if (o->expires_s == NO_EXPIRY)
        return cannot_use(path, "OCSP response",
                          "it has no nextUpdate, so it would be sent for ever: get one that has",
                          why, n_why);
    struct nj__tls_dates *d = add_dates(c, path, NJ__TLS_DATES_OCSP, why, n_why);
    if (!d)
        return -1;
    d->from_s = from_s;
    d->until_s = o->expires_s - 1; /* as nj__tls_on_ocsp() */
    return 0;
}

/* --- life ---------------------------------------------------------------------------------- */

static void free_context(struct nj_ref *ref)
{
    struct nj_tls_server_context *c = nj_container_of(ref, struct nj_tls_server_context, ref);

    for (uint32_t i = 0; i < c->n_identities; i++)
        SSL_CTX_free(c->identity[i].ctx);
    for (uint32_t i = 0; i < c->n_certs; i++)
        X509_free(c->cert[i]);
    for (uint32_t i = 0; i < c->n_ocsp; i++)
        free(c->ocsp[i].bytes);
    for (uint32_t i = 0; i < c->n_dates; i++)
        free(c->dates[i].path);
    nj_sites_free(c->sites);
    free(c->set);
    free(c->identity);
    free(c->cert);
    free(c->dates);
    free(c);
}

/* Room for all that the configuration names. */
static bool allocate(struct nj_tls_server_context *c, const struct nj_tls_server_config *config)
{
    size_t n = config->n_identities;

    for (uint32_t i = 0; i < config->n_sets; i++)
        n += config->sets[i].n_identities;
    c->set = calloc(config->n_sets + (size_t)1, sizeof *c->set);
    c->identity = calloc(n, sizeof *c->identity);
    c->cert = calloc(n, sizeof *c->cert);
    c->dates = calloc(n + config->n_sets + 1 + config->n_ocsp, sizeof *c->dates);
    return c->set && c->identity && c->cert && c->dates;
}

static int read_files(struct nj_tls_server_context *c, const struct nj_tls_server_config *config,
                      char *why, size_t n_why)
{
    if (config->n_identities == 0 || config->n_identities > NJ_TLS_IDENTITIES_MAX)
        return nj_set_error(why, n_why, "between 1 and %u certificates are possible, not %u",
                            NJ_TLS_IDENTITIES_MAX, config->n_identities);
    if (config->n_ocsp > NJ_TLS_IDENTITIES_MAX)
        return nj_set_error(why, n_why, "at most %u OCSP responses are possible, not %u",
                            NJ_TLS_IDENTITIES_MAX, config->n_ocsp);
    const struct nj_tls_set own = {.id = config->id,
                                   .identities = config->identities,
                                   .n_identities = config->n_identities,
                                   .client_ca = config->client_ca,
                                   .client_cert_required = config->client_cert_required};
    if (!allocate(c, config))
        return nj_set_error(why, n_why, "out of memory");
    if (add_set(c, &own, why, n_why) != 0)
        return -1;
    for (uint32_t i = 0; i < config->n_sets; i++)
        if (add_set(c, &config->sets[i], why, n_why) != 0)
            return -1;
    for (uint32_t i = 0; i < config->n_ocsp; i++)
        if (add_ocsp(c, config->ocsp[i], why, n_why) != 0)
            return -1;
    return 0;
}

struct nj_tls_server_context *nj_tls_server_context_new(const struct nj_tls_server_config *config,
                                                        char *why, size_t n_why)
{
    struct nj_tls_server_context *c = calloc(1, sizeof *c);

    if (!c) {
        nj_sites_free(config->sites);
        nj_set_error(why, n_why, "out of memory");
        return NULL;
    }
    /* At exit() other threads may still run handshakes. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    nj_ref_init(&c->ref, free_context);
    c->tickets = config->tickets;
    c->unix_s = config->unix_s;
    c->keylog = config->keylog;
    c->keylog_ctx = config->keylog_ctx;
    c->http1 = config->http1;
    c->sites = config->sites;
    if (read_files(c, config, why, n_why) == 0)
        return c;
    nj_ref_put(&c->ref);
    return NULL;
}
