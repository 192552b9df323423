/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificates and ticket keys of a server with TLS (RFC 8446), for all its shards: read at the
 * start and at each reload. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "config/config_by_name.h"
#include "log/log.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"

/* A ticket can be used for two to three periods. RFC 8446 4.6.1 permits seven days. */
#define TICKET_KEY_PERIOD (8u * 3600u * NJ_SEC)

/* --- the log of secrets ---------------------------------------------------------------------- */

static bool open_keylog(struct nj_server *s)
{
    const struct nj_server_config *c = s->settings.config;

    if (!c->tls_keylog)
        return true;
    s->keylog = open(c->tls_keylog, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->keylog < 0) {
        snprintf(s->why, sizeof s->why, "--keylog %s: %s", c->tls_keylog, strerror(errno));
        return false;
    }
    nj_log(
        NJ_LEVEL_WARNING,
        "--keylog: the secrets of all TLS connections are written to %s. Whoever reads this file "
        "can decrypt them",
        c->tls_keylog);
    return true;
}

/* Appends the line in one call, so that lines of several workers do not mix. A disk that is full
 * loses lines. */
static void write_secret(void *server, const char *line)
{
    const struct nj_server *s = server;
    const struct iovec part[] = {{(char *)(uintptr_t)line, strlen(line)}, {"\n", 1}};

    (void)!writev(s->keylog, part, 2);
}

/* --- keys of session tickets ----------------------------------------------------------------- */

static bool add_ticket_key(struct nj_tls_ticket_keys *k,
                           void (*add)(struct nj_tls_ticket_keys *, const uint8_t *))
{
    uint8_t random[sizeof(struct nj_tls_ticket_key)];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    add(k, random);
    explicit_bzero(random, sizeof random);
    return true;
}

void nj__server_rotate_ticket_keys(struct nj_server *s, nj_ns now)
{
    if (!s->has_tls || now < s->tickets_rotate_at)
        return;
    s->tickets_rotate_at = now + TICKET_KEY_PERIOD;
    add_ticket_key(&s->tickets, nj_tls_ticket_keys_rotate);
}

/* --- certificates ---------------------------------------------------------------------------- */

static int64_t unix_s(void)
{
    return (int64_t)time(NULL);
}

/* Reads the files of the configuration. */
static struct nj_tls_server_context *read_context(struct nj_server *s, char *why, size_t n_why)
{
    const struct nj_server_config *c = s->settings.config;
    struct nj_tls_identity_files files[NJ_SERVER_TLS_CERTS_MAX];
    struct nj_tls_server_config config = {
        .identities = files,
        .n_identities = nj_config_count_values(c->tls_cert, NJ_SERVER_TLS_CERTS_MAX),
        .ocsp = c->tls_ocsp,
        .n_ocsp = nj_config_count_values(c->tls_ocsp, NJ_SERVER_TLS_CERTS_MAX),
        .unix_s = unix_s,
        .client_ca = c->tls_client_ca,
        .client_cert_required = !c->tls_client_optional,
        .tickets = &s->tickets,
        .keylog = s->keylog >= 0 ? write_secret : NULL,
        .keylog_ctx = s,
    };

    for (uint32_t i = 0; i < config.n_identities; i++)
        files[i] = (struct nj_tls_identity_files){c->tls_cert[i], c->tls_key[i]};
    return nj_tls_server_context_new(&config, why, n_why);
}

bool nj__server_init_tls(struct nj_server *s)
{
    s->keylog = -1;
    if (nj_config_count_values(s->settings.config->tls_cert, NJ_SERVER_TLS_CERTS_MAX) == 0)
        return true;
    if (!add_ticket_key(&s->tickets, nj_tls_ticket_keys_init)) {
        snprintf(s->why, sizeof s->why, "cannot get random numbers from the system");
        return false;
    }
    struct nj_tls_server_context *context =
        open_keylog(s) ? read_context(s, s->why, sizeof s->why) : NULL;
    if (!context) {
        nj__server_free_tls(s);
        return false;
    }
    nj_tls_current_context_init(&s->tls, context);
    s->tickets_rotate_at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + TICKET_KEY_PERIOD;
    s->has_tls = true;
    return true;
}

bool nj__server_reload_tls(struct nj_server *s)
{
    char why[sizeof s->why];

    if (!s->has_tls)
        return true;
    struct nj_tls_server_context *context = read_context(s, why, sizeof why);
    if (!context) {
        nj_log(NJ_LEVEL_ERROR, "TLS: %s; the former certificates stay in use", why);
        return false;
    }
    /* A session of a client whose certificate another authority verified must not be resumed. */
    for (uint32_t i = 0; s->settings.config->tls_client_ca && i < NJ_TLS_TICKET_KEYS; i++)
        add_ticket_key(&s->tickets, nj_tls_ticket_keys_rotate);
    nj_tls_current_context_replace(&s->tls, context);
    nj_log(NJ_LEVEL_INFO, "TLS: certificates were read again");
    return true;
}

void nj__server_free_tls(struct nj_server *s)
{
    if (s->has_tls)
        nj_tls_current_context_fini(&s->tls);
    s->has_tls = false;
    nj_tls_ticket_keys_wipe(&s->tickets);
    if (s->keylog >= 0)
        close(s->keylog);
    s->keylog = -1;
}
