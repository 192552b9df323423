/* SPDX-License-Identifier: BSD-3-Clause */
#include "server_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/compiler.h"
#include "base/list.h"

/* ---- certificate ---- */

static X509 *make_certificate(EVP_PKEY *key)
{
    static const unsigned char name[] = "nj-exchange";
    X509 *x = X509_new();

    if (x && X509_set_version(x, X509_VERSION_3) == 1 &&
        ASN1_INTEGER_set(X509_get_serialNumber(x), 1) == 1 &&
        ASN1_TIME_set_string(X509_getm_notBefore(x), "20200101000000Z") == 1 &&
        ASN1_TIME_set_string(X509_getm_notAfter(x), "99991231235959Z") == 1 &&
        X509_set_pubkey(x, key) == 1 &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, name, -1, -1, 0) ==
            1 &&
        X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 && X509_sign(x, key, NULL) > 0)
        return x;
    X509_free(x);
    return NULL;
}

static bool write_files(const struct nj_tls_identity_files *files, X509 *x, EVP_PKEY *key)
{
    FILE *f = fopen(files->cert, "we");
    bool good = f && PEM_write_X509(f, x) == 1;

    good = f && fclose(f) == 0 && good;
    f = fopen(files->key, "we");
    good = f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1 && good;
    return f && fclose(f) == 0 && good;
}

/* A context with a new certificate, whose files are removed again. */
static struct nj_tls_server_context *make_context(struct server_tls *t, char *why, size_t n_why)
{
    char folder[] = "/tmp/nj-exchange-XXXXXX", cert[64], key_file[64];
    struct nj_tls_server_context *c = NULL;
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    X509 *x = key ? make_certificate(key) : NULL;

    snprintf(why, n_why, "cannot make a certificate in /tmp");
    if (x && mkdtemp(folder)) {
        snprintf(cert, sizeof cert, "%s/cert", folder);
        snprintf(key_file, sizeof key_file, "%s/key", folder);
        const struct nj_tls_identity_files files = {cert, key_file};
        const struct nj_tls_server_config config = {
            .identities = &files, .n_identities = 1, .tickets = &t->tickets};
        if (write_files(&files, x, key))
            c = nj_tls_server_context_new(&config, why, n_why);
        unlink(cert);
        unlink(key_file);
        rmdir(folder);
    }
    X509_free(x);
    EVP_PKEY_free(key);
    return c;
}

bool server_tls_init(struct server_tls *t, char *why, size_t n_why)
{
    static const uint8_t random[sizeof(struct nj_tls_ticket_key)] = {1, 2, 3};

    nj_list_init(&t->submitted);
    nj_tls_ticket_keys_init(&t->tickets, random);
    struct nj_tls_server_context *c = make_context(t, why, n_why);
    if (c)
        nj_tls_current_context_init(&t->current, c);
    t->is_ready = c != NULL;
    return t->is_ready;
}

void server_tls_fini(struct server_tls *t)
{
    if (t->is_ready)
        nj_tls_current_context_fini(&t->current);
    t->is_ready = false;
}

/* ---- workers ---- */

static bool submit(void *ctx, struct nj_task *task)
{
    nj_list_push_back(&((struct server_tls *)ctx)->submitted, &task->node);
    return true;
}

static void flush(void *ctx)
{
    (void)ctx;
}

static uint32_t poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct server_tls *t = ctx;
    uint32_t got = 0;

    while (got < n && !nj_list_empty(&t->submitted)) {
        struct nj_task *task = nj_container_of(nj_list_pop(&t->submitted), struct nj_task, node);
        task->ops->run(task);
        tasks[got++] = task;
    }
    return got;
}

struct nj_worker_ops server_tls_workers(struct server_tls *t)
{
    return (struct nj_worker_ops){.ctx = t, .submit = submit, .flush = flush, .poll = poll};
}
