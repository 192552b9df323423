/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs libssl on the records of a client until the traffic secrets are known. Follows RFC 8446 2, 4
 * and 7.1; RFC 7301 (ALPN); RFC 6066 3 (server name); RFC 8449 (record size limit). */
#include "tls/handshake_internal.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/rand.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/str.h"
#include "base/types.h"
#include "tls/aead.h"

#define LIBSSL_FRAGMENT_LEAST 512u /* SSL_set_max_send_fragment(3) */

static struct nj_tls_handshake *handshake_of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* --- callbacks of libssl ------------------------------------------------------------------ */

/* Reads a secret of hexadecimal digits. Returns its length, or 0 if it is malformed. */
static uint8_t read_secret(const char *hex, uint8_t *out)
{
    uint8_t n = 0;

    for (; nj_hex_value(hex[0]) >= 0 && nj_hex_value(hex[1]) >= 0; hex += 2) {
        if (n == NJ_TLS_SECRET_BYTES_MAX)
            return 0;
        out[n++] = (uint8_t)(nj_hex_value(hex[0]) << 4 | nj_hex_value(hex[1]));
    }
    return n;
}

uint8_t nj_tls_read_secret_line(const char *line, const char *label, uint8_t *out)
{
    size_t n = strlen(label);

    if (strncmp(line, label, n) != 0 || line[n] != ' ')
        return 0;
    const char *secret = strchr(line + n + 1, ' ');
    return secret ? read_secret(secret + 1, out) : 0;
}

void nj__tls_on_secret(const SSL *ssl, const char *line)
{
    struct nj_tls_handshake *h = handshake_of(ssl);
    uint8_t n = nj_tls_read_secret_line(line, "CLIENT_TRAFFIC_SECRET_0", h->info.client_secret);

    if (n == 0)
        n = nj_tls_read_secret_line(line, "SERVER_TRAFFIC_SECRET_0", h->info.server_secret);
    if (n > 0)
        h->info.n_secret = n;
    if (h->context->keylog)
        h->context->keylog(h->context->keylog_ctx, line);
}

/* The host name of the server_name extension (RFC 6066 3): a list with one name. NULL: none. */
static const uint8_t *server_name_of(SSL *ssl, size_t *n_name)
{
    const unsigned char *ext;
    size_t n;

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext, &n) != 1 || n < 5 ||
        (size_t)(ext[0] << 8 | ext[1]) != n - 2 || ext[2] != TLSEXT_NAMETYPE_host_name)
        return NULL;
    *n_name = (size_t)(ext[3] << 8 | ext[4]);
    return *n_name > 0 && *n_name == n - 5 && !memchr(ext + 5, 0, *n_name) ? ext + 5 : NULL;
}

/* False: there is no memory. SSL_set_SSL_CTX() takes certificates, authorities, and the context of
 * sessions, but not whether clients are asked. */
static bool choose_identity(struct nj_tls_handshake *h, SSL *ssl)
{
    size_t n;
    const uint8_t *name = server_name_of(ssl, &n);

    if (!name || n >= sizeof h->info.server_name)
        n = 0;
    /* RFC 6066 3: a name has no trailing dot. Some clients send it, as it stands in a URL. */
    if (n > 1 && name[n - 1] == '.')
        n--;
    if (n > 0)
        memcpy(h->info.server_name, name, n);
    h->info.server_name[n] = '\0';
    SSL_CTX *ctx =
        nj__tls_choose(h->context, h->info.server_name, &h->info.identity, &h->name_is_known)->ctx;
    if (!SSL_set_SSL_CTX(ssl, ctx))
        return false;
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), NULL);
    return true;
}

int nj__tls_on_server_name(SSL *ssl, int *alert, void *arg)
{
    return handshake_of(ssl)->name_is_known ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static bool has_extension(SSL *ssl, unsigned type)
{
    const unsigned char *ext;
    size_t n;

    return SSL_client_hello_get0_ext(ssl, type, &ext, &n) == 1;
}

static bool offers_tls13(SSL *ssl)
{
    const unsigned char *ext;
    size_t n;

    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_versions, &ext, &n) != 1)
        return false;
    for (size_t i = 1; i + 1 < n; i += 2)
        if (ext[i] == 0x03 && ext[i + 1] == 0x04)
            return true;
    return false;
}

int nj__tls_on_client_hello(SSL *ssl, int *alert, void *context)
{
    struct nj_tls_handshake *h = handshake_of(ssl);

    if (!offers_tls13(ssl)) {
        h->failure = NJ_TLS_FAIL_VERSION;
        *alert = SSL_AD_PROTOCOL_VERSION;
        return SSL_CLIENT_HELLO_ERROR;
    }
    /* libssl does not call nj__tls_on_alpn() if the client offers nothing. HTTP/2 needs ALPN (RFC
     * 9113 3.2), HTTP/1.1 does not (RFC 9112 9.7). */
    if (!has_extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation)) {
        if (!h->context->http1) {
            h->failure = NJ_TLS_FAIL_ALPN;
            *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
            return SSL_CLIENT_HELLO_ERROR;
        }
        h->info.protocol = NJ_TLS_HTTP1;
    }
    if (choose_identity(h, ssl))
        return SSL_CLIENT_HELLO_SUCCESS;
    h->failure = NJ_TLS_FAIL_MEMORY;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

/* The entry of a ProtocolNameList (RFC 7301 3.1), without the length of the list: the byte of its
 * length. NULL: the name is not in it. */
static const unsigned char *find_protocol(const unsigned char *list, unsigned n_list,
                                          const char *name)
{
    const size_t n_name = strlen(name);

    for (unsigned i = 0; i < n_list && n_list - i > list[i]; i += 1u + list[i])
        if (list[i] == n_name && memcmp(&list[i + 1], name, n_name) == 0)
            return &list[i];
    return NULL;
}

int nj__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                    const unsigned char *in, unsigned n_in, void *context)
{
    struct nj_tls_handshake *h = handshake_of(ssl);
    const unsigned char *chosen = find_protocol(in, n_in, "h2");

    h->info.protocol = NJ_TLS_HTTP2;
    if (!chosen && h->context->http1) {
        chosen = find_protocol(in, n_in, "http/1.1");
        if (!chosen)
            chosen = find_protocol(in, n_in, "http/1.0"); /* curl --http1.0 */
        h->info.protocol = NJ_TLS_HTTP1;
    }
    if (!chosen) {
        h->failure = NJ_TLS_FAIL_ALPN;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = chosen + 1;
    *n_out = chosen[0];
    return SSL_TLSEXT_ERR_OK;
}

static bool start_ticket(const struct nj_tls_ticket_key *key, const uint8_t *iv,
                         EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypts)
{
    char digest[] = "SHA256";
    uint8_t hmac[sizeof key->hmac];
    OSSL_PARAM params[3];

    memcpy(hmac, key->hmac, sizeof hmac);
    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, hmac, sizeof hmac);
    params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0);
    params[2] = OSSL_PARAM_construct_end();
    bool ok = EVP_MAC_CTX_set_params(mac, params) == 1 &&
              EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->aes, iv, encrypts) == 1;
    explicit_bzero(hmac, sizeof hmac);
    return ok;
}

/* Results: -1 error, 0 unknown key (a full handshake follows), 1 sealed, 2 opened and to be
 * renewed: clients use a ticket once (RFC 8446 C.4). */
int nj__tls_on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int encrypts)
{
    struct nj_tls_server_context *c = handshake_of(ssl)->context;
    struct nj_tls_ticket_key key;

    if (encrypts) {
        nj_tls_ticket_keys_newest(c->tickets, &key);
        memcpy(name, key.name, sizeof key.name);
        if (RAND_bytes(iv, 16) != 1) {
            explicit_bzero(&key, sizeof key);
            return -1;
        }
    } else if (!nj_tls_ticket_keys_find(c->tickets, name, &key)) {
        return 0;
    }
    bool ok = start_ticket(&key, iv, cipher, mac, encrypts);
    explicit_bzero(&key, sizeof key);
    return !ok ? -1 : encrypts ? 1 : 2;
}

/* The longest fragment that the session's max_fragment_length allows (RFC 6066 4), or 0. libssl
 * agrees to this extension by itself. */
static uint32_t fragment_max(const SSL_SESSION *session)
{
    uint8_t code = session ? SSL_SESSION_get_max_fragment_length(session) : 0;

    return code == TLSEXT_max_fragment_length_DISABLED || code > TLSEXT_max_fragment_length_4096
               ? 0
               : 256u << code;
}

/* libssl would also keep the max_fragment_length of a ticket, for a client that no longer asks for
 * it: such a session is not resumed. */
SSL_TICKET_RETURN nj__tls_on_opened_ticket(SSL *ssl, SSL_SESSION *session,
                                           const unsigned char *name, size_t n_name,
                                           SSL_TICKET_STATUS status, void *arg)
{
    if ((status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) ||
        fragment_max(session) > 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

int nj__tls_on_ocsp(SSL *ssl, void *context)
{
    const struct nj_tls_server_context *c = context;
    const X509 *cert = SSL_get_certificate(ssl); /* the one that libssl has chosen */
    uint8_t *copy;

    for (uint32_t i = 0; i < c->n_ocsp; i++) {
        const struct nj__tls_ocsp *o = &c->ocsp[i];
        if (X509_cmp(o->cert, cert) != 0 || o->expires_s <= c->unix_s())
            continue;
        if (!(copy = OPENSSL_memdup(o->bytes, o->n_bytes)))
            return SSL_TLSEXT_ERR_NOACK;
        SSL_set_tlsext_status_ocsp_resp(ssl, copy, o->n_bytes); /* libssl frees it */
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

/* We accept records of any length: the limit of the RFC and the byte of the type. If libssl agrees
 * to max_fragment_length, this extension is not answered: both together are an error (5). */
int nj__tls_add_record_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char **out,
                             size_t *n_out, X509 *x, size_t chain, int *alert, void *arg)
{
    static const uint8_t limit[2] = {(NJ_TLS_CONTENT_MAX + 1) >> 8,
                                     (NJ_TLS_CONTENT_MAX + 1) & 0xff};

    if (fragment_max(SSL_get_session(ssl)) > 0)
        return 0;
    *out = limit;
    *n_out = sizeof limit;
    return 1;
}

int nj__tls_parse_record_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char *in,
                               size_t n_in, X509 *x, size_t chain, int *alert, void *arg)
{
    uint32_t limit = n_in == 2 ? (uint32_t)(in[0] << 8 | in[1]) : 0;

    if (limit < NJ_TLS_RECORD_LIMIT_LEAST) {
        *alert = n_in == 2 ? SSL_AD_ILLEGAL_PARAMETER : SSL_AD_DECODE_ERROR;
        return 0;
    }
    if (limit > NJ_TLS_CONTENT_MAX)
        return 1;
    handshake_of(ssl)->info.record_plain_max = (uint16_t)(limit - 1);
    /* Those of the handshake, too. libssl cannot make shorter ones. */
    SSL_set_max_send_fragment(ssl, nj_max_u32(limit - 1, LIBSSL_FRAGMENT_LEAST));
    return 1;
}

/* --- life --------------------------------------------------------------------------------- */

struct nj_tls_handshake *nj_tls_handshake_new(struct nj_tls_server_context *c)
{
    struct nj_tls_handshake *h = OPENSSL_zalloc(sizeof *h);

    if (!h)
        return NULL;
    nj_tls_server_context_take(c);
    h->context = c;
    h->info.record_plain_max = NJ_TLS_CONTENT_MAX;
    h->ssl = SSL_new(c->identity[0].ctx);
    h->in = BIO_new(BIO_s_mem());
    h->out = BIO_new(BIO_s_mem());
    if (!h->ssl || !h->in || !h->out) {
        BIO_free(h->in);
        BIO_free(h->out);
        SSL_free(h->ssl);
        nj_tls_server_context_put(c);
        OPENSSL_free(h);
        return NULL;
    }
    BIO_set_mem_eof_return(h->in, -1); /* no bytes yet is not the end */
    SSL_set_bio(h->ssl, h->in, h->out);
    SSL_set_app_data(h->ssl, h);
    SSL_set_accept_state(h->ssl);
    return h;
}

void nj_tls_handshake_release(struct nj_tls_handshake *h)
{
    if (!h->ssl)
        return;
    BIO_up_ref(h->out);
    SSL_free(h->ssl);
    nj_tls_server_context_put(h->context);
    h->ssl = NULL;
    h->in = NULL;
    h->context = NULL;
}

bool nj_tls_handshake_is_released(const struct nj_tls_handshake *h)
{
    return !h->ssl;
}

void nj_tls_handshake_free(struct nj_tls_handshake *h)
{
    if (!h)
        return;
    nj_tls_handshake_release(h);
    BIO_free(h->out);
    OPENSSL_clear_free(h, sizeof *h);
}

/* --- steps -------------------------------------------------------------------------------- */

static enum nj_tls_failure classify(unsigned long error, int verify_result)
{
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;

    if (reason > SSL_AD_REASON_OFFSET) /* the client's alert */
        return NJ_TLS_FAIL_ALERT;
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_VERSION_NUMBER:
        return NJ_TLS_FAIL_VERSION;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
        return NJ_TLS_FAIL_NEGOTIATION;
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return NJ_TLS_FAIL_ALPN;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return NJ_TLS_FAIL_CLIENT_CERT;
    default:
        if (verify_result != X509_V_OK)
            return NJ_TLS_FAIL_CLIENT_CERT;
        return reason == ERR_R_MALLOC_FAILURE ? NJ_TLS_FAIL_MEMORY : NJ_TLS_FAIL_MESSAGE;
    }
}

static enum nj_tls_handshake_result fail(struct nj_tls_handshake *h, enum nj_tls_failure why)
{
    if (h->failure == NJ_TLS_FAIL_NONE)
        h->failure = why;
    explicit_bzero(h->info.client_secret, sizeof h->info.client_secret);
    explicit_bzero(h->info.server_secret, sizeof h->info.server_secret);
    return NJ_TLS_HANDSHAKE_FAILED;
}

/* Number of records of application data, which is how records under traffic keys look. */
static uint32_t count_data_records(const uint8_t *p, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at + NJ_TLS_HEADER_BYTES <= n;
         at += NJ_TLS_HEADER_BYTES + (uint32_t)(p[at + 3] << 8 | p[at + 4]))
        count += p[at] == NJ_TLS_APPLICATION_DATA;
    return count;
}

static void note_client_subject(struct nj_tls_handshake *h)
{
    const X509 *cert = SSL_get0_peer_certificate(h->ssl);
    BIO *text = cert ? BIO_new(BIO_s_mem()) : NULL;

    h->info.has_client_cert = cert != NULL;
    if (!text)
        return;
    if (X509_NAME_print_ex(text, X509_get_subject_name(cert), 0,
                           XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB) > 0) {
        int n = BIO_read(text, h->info.client_subject, sizeof h->info.client_subject - 1);
        h->info.client_subject[n > 0 ? n : 0] = '\0';
    }
    BIO_free(text);
}

/* Fills what the connection takes over. The last flight of the handshake was the client's, so all
 * output of this step is tickets. */
static enum nj_tls_handshake_result fill_info(struct nj_tls_handshake *h)
{
    const uint8_t *out;
    uint32_t n = nj_tls_handshake_output(h, &out);

    h->info.cipher = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(h->ssl));
    if (!nj_tls_cipher_is_known(h->info.cipher) || h->info.n_secret == 0)
        return fail(h, NJ_TLS_FAIL_MESSAGE);
    h->info.n_server_records = count_data_records(out, n);
    uint32_t n_max = fragment_max(SSL_get_session(h->ssl));
    if (n_max > 0) /* some peers count the byte of the type */
        h->info.record_plain_max = (uint16_t)nj_min_u32(h->info.record_plain_max, n_max - 1);
    h->info.resumed = SSL_session_reused(h->ssl);
    note_client_subject(h);
    return NJ_TLS_HANDSHAKE_DONE;
}

/* The version of a record is to be ignored (RFC 8446 5.1), which libssl does not do: it gets the
 * usual one. */
static bool feed(struct nj_tls_handshake *h, const uint8_t *record, uint32_t n)
{
    const uint8_t header[NJ_TLS_HEADER_BYTES] = {record[0], 3, 3, record[3], record[4]};
    const int n_rest = (int)(n - sizeof header);

    return BIO_write(h->in, header, sizeof header) == (int)sizeof header &&
           (n_rest == 0 || BIO_write(h->in, record + sizeof header, n_rest) == n_rest);
}

/* One record of `n` bytes, or a header alone whose record cannot be one. */
static enum nj_tls_handshake_result step(struct nj_tls_handshake *h, const uint8_t *record,
                                         uint32_t n)
{
    ERR_clear_error();
    if (!feed(h, record, n))
        return fail(h, NJ_TLS_FAIL_MEMORY);
    int result = SSL_do_handshake(h->ssl);
    if (result == 1)
        return fill_info(h);
    if (SSL_get_error(h->ssl, result) == SSL_ERROR_WANT_READ)
        return NJ_TLS_HANDSHAKE_MORE;
    enum nj_tls_failure why = classify(ERR_peek_error(), (int)SSL_get_verify_result(h->ssl));
    ERR_clear_error();
    return fail(h, why);
}

/* A record that cannot be one. Before its keys, the alert is ours; after that, libssl's, which sees
 * the fault in the header. */
static enum nj_tls_handshake_result refuse(struct nj_tls_handshake *h, const uint8_t *data,
                                           uint32_t n, enum nj_tls_alert alert)
{
    uint8_t record[NJ_TLS_PLAIN_ALERT_BYTES];

    if (h->info.n_secret == 0) {
        nj_tls_plain_alert(alert, record);
        BIO_write(h->out, record, sizeof record);
    } else if (n >= NJ_TLS_HEADER_BYTES) {
        (void)step(h, data, NJ_TLS_HEADER_BYTES);
    }
    return fail(h, NJ_TLS_FAIL_MESSAGE);
}

enum nj_tls_handshake_result nj_tls_handshake_input(struct nj_tls_handshake *h, const uint8_t *data,
                                                    uint32_t n, uint32_t *n_used)
{
    enum nj_tls_handshake_result result = NJ_TLS_HANDSHAKE_MORE;

    *n_used = 0;
    BIO_reset(h->out);
    while (result == NJ_TLS_HANDSHAKE_MORE) {
        const uint8_t *p = data + *n_used;
        uint32_t n_left = n - *n_used;
        int n_record = nj_tls_record_size(p, n_left);
        if (n_record < 0)
            return refuse(h, p, n_left, (enum nj_tls_alert) - n_record);
        if (n_record == 0 || (uint32_t)n_record > n_left)
            break;
        result = step(h, p, (uint32_t)n_record);
        *n_used += (uint32_t)n_record;
    }
    return result;
}

/* As libssl verified it (RFC 5280 6), but with the authorities of another context. */
static bool verifies_under(SSL *ssl, SSL_CTX *ctx)
{
    X509 *cert = SSL_get0_peer_certificate(ssl);
    X509_STORE_CTX *v = X509_STORE_CTX_new();
    bool ok = v &&
              X509_STORE_CTX_init(v, SSL_CTX_get_cert_store(ctx), cert,
                                  SSL_get_peer_cert_chain(ssl)) == 1 &&
              X509_STORE_CTX_set_default(v, "ssl_client") == 1 &&
              X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(v), SSL_get0_param(ssl)) == 1 &&
              X509_verify_cert(v) == 1;

    X509_STORE_CTX_free(v);
    ERR_clear_error();
    return ok;
}

/* Does another context accept the client's certificate, or the lack of one? */
static bool is_accepted_by(SSL *ssl, SSL_CTX *ctx)
{
    int mode = SSL_CTX_get_verify_mode(ctx);

    if (!SSL_get0_peer_certificate(ssl))
        return !(mode & SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
    return !(mode & SSL_VERIFY_PEER) || verifies_under(ssl, ctx);
}

enum nj_tls_handshake_result nj_tls_handshake_recheck(struct nj_tls_handshake *h,
                                                      struct nj_tls_current_context *current)
{
    struct nj_tls_server_context *now = nj_tls_current_context_take(current);
    enum nj_tls_handshake_result result = NJ_TLS_HANDSHAKE_DONE;
    struct nj_site_identity of;
    bool is_known;

    if (now != h->context &&
        !is_accepted_by(h->ssl, nj__tls_choose(now, h->info.server_name, &of, &is_known)->ctx)) {
        BIO_reset(h->out);
        result = fail(h, NJ_TLS_FAIL_CLIENT_CERT);
    }
    nj_tls_server_context_put(now);
    return result;
}

uint32_t nj_tls_handshake_output(const struct nj_tls_handshake *h, const uint8_t **data)
{
    char *p = NULL;
    long n = BIO_get_mem_data(h->out, &p);

    *data = (const uint8_t *)p;
    return n > 0 ? (uint32_t)n : 0;
}

const struct nj_tls_handshake_info *nj_tls_handshake_info(const struct nj_tls_handshake *h)
{
    return &h->info;
}

enum nj_tls_failure nj_tls_handshake_failure(const struct nj_tls_handshake *h)
{
    return h->failure;
}
