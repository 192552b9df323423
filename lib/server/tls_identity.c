/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificates and ticket keys of a server with TLS (RFC 8446), for all its shards: read at the
 * start and at each reload. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "config/config_by_name.h"
#include "log/log.h"
#include "server/server_internal.h"
#include "threads/os_clock.h"
#include "tls/cert_dates.h"

#define TICKET_KEY_PERIOD (NJ_TLS_TICKET_PERIOD_S * NJ_SEC)
#define DATES_PERIOD_S    60 /* between two checks whether a certificate expires soon */

/* --- the log of secrets ---------------------------------------------------------------------- */

/* Opens the file, which only our user may own and read. Returns a descriptor, or -1 and the reason
 * in `problem`. */
static int open_private(const char *path, const char **problem)
{
    /* O_NONBLOCK: a FIFO without a reader is an error. It has no effect on regular files. */
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat st;

    if (fd < 0) {
        *problem = errno == ELOOP ? "it is a symbolic link: name the file itself" : strerror(errno);
        return -1;
    }
    if (fstat(fd, &st) != 0)
        *problem = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        *problem = "it is not a regular file";
    else if (st.st_uid != geteuid())
        *problem = "it belongs to another user, who could read it: remove it";
    else if ((st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        *problem = strerror(errno);
    else
        return fd;
    close(fd);
    return -1;
}

static bool open_keylog(struct nj_server *s)
{
    const struct nj_server_config *c = s->settings.config;
    const char *problem = "";

    if (!c->tls_keylog)
        return true;
    s->keylog = open_private(c->tls_keylog, &problem);
    if (s->keylog < 0) {
        snprintf(s->why, sizeof s->why, "--keylog %s: %s", c->tls_keylog, problem);
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
    struct nj_tls_identity_files files[NJ_SERVER_TLS_CERTS_MAX];
    struct nj_tls_server_config config;

    nj_settings_tls_config(s->settings.config, files, &config);
    config.unix_s = unix_s;
    config.tickets = &s->tickets;
    config.keylog = s->keylog >= 0 ? write_secret : NULL;
    config.keylog_ctx = s;
    return nj_tls_server_context_new(&config, why, n_why);
}

static void log_dates(const struct nj_tls_server_context *context, int64_t before_s, int64_t now_s)
{
    struct nj_tls_date_note note;
    uint32_t at = 0;

    while (nj_tls_dates_next(context, &at, before_s, now_s, &note))
        nj_log(NJ_LEVEL_WARNING, "TLS: %s: %s", note.path, note.text);
}

void nj__server_watch_certificates(struct nj_server *s, int64_t now_s)
{
    if (!s->has_tls || now_s / DATES_PERIOD_S == s->dates_told_s / DATES_PERIOD_S)
        return;
    struct nj_tls_server_context *context = nj_tls_current_context_take(&s->tls);
    log_dates(context, s->dates_told_s, now_s);
    nj_tls_server_context_put(context);
    s->dates_told_s = now_s;
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
    s->dates_told_s = unix_s();
    log_dates(context, NJ_TLS_DATES_UNTOLD, s->dates_told_s);
    nj_tls_current_context_init(&s->tls, context);
    s->tickets_rotate_at = nj_os_clock_gettime_ns(CLOCK_MONOTONIC) + TICKET_KEY_PERIOD;
    s->has_tls = true;
    return true;
}

/* A session of a client whose certificate another authority verified must not be resumed. */
static void forget_tickets(struct nj_server *s)
{
    for (uint32_t i = 0; s->settings.config->tls_client_ca && i < NJ_TLS_TICKET_KEYS; i++)
        add_ticket_key(&s->tickets, nj_tls_ticket_keys_rotate);
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
    /* Handshakes that seal a ticket after the second call find the new context when they end
     * (nj_tls_handshake_recheck()). */
    forget_tickets(s);
    log_dates(context, NJ_TLS_DATES_UNTOLD, unix_s());
    nj_tls_current_context_replace(&s->tls, context);
    forget_tickets(s);
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
