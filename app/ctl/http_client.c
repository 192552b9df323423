/* SPDX-License-Identifier: BSD-3-Clause */
/* HTTP/1.1 over a Unix socket, by libcurl. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"

struct ctl_client {
    CURL *curl;
    CURLM *multi; /* what runs it */
    const char *path;
    double timeout_s;
    int fd; /* of ctl_client_watch() */
    bool (*ready)(void *ctx);
    void *ctx;
    bool (*stream_to)(void *ctx, const char *bytes, size_t n); /* NULL: none */
    void *stream_ctx;
    struct ctl_answer *answer; /* of the request */
};

struct ctl_client *ctl_client_new(const char *path, double timeout_s)
{
    struct ctl_client *c = calloc(1, sizeof *c);

    if (!c || curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
        free(c);
        return NULL;
    }
    c->path = path;
    c->timeout_s = timeout_s;
    c->curl = curl_easy_init();
    c->multi = curl_multi_init();
    if (c->curl && c->multi)
        return c;
    ctl_client_free(c);
    return NULL;
}

void ctl_client_free(struct ctl_client *c)
{
    if (c->multi)
        curl_multi_cleanup(c->multi);
    if (c->curl)
        curl_easy_cleanup(c->curl);
    curl_global_cleanup();
    free(c);
}

void ctl_client_watch(struct ctl_client *c, int fd, bool (*ready)(void *ctx), void *ctx)
{
    c->fd = fd;
    c->ready = ready;
    c->ctx = ctx;
}

void ctl_client_stream_to(struct ctl_client *c,
                          bool (*take)(void *ctx, const char *bytes, size_t n), void *ctx)
{
    c->stream_to = take;
    c->stream_ctx = ctx;
}

/* A callback of libcurl. Anything but the number of bytes ends the transfer. */
static size_t take(char *data, size_t one, size_t n, void *client)
{
    struct ctl_client *c = client;
    struct ctl_answer *a = c->answer;
    long status = 0;

    (void)one; /* 1 */
    if (c->stream_to)
        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200)
        return c->stream_to(c->stream_ctx, data, n) ? n : CURL_WRITEFUNC_ERROR;
    if (n > CTL_ANSWER_BYTES_MAX - a->n_bytes)
        return CURL_WRITEFUNC_ERROR;
    char *more = realloc(a->body, a->n_bytes + n + 1);
    if (!more)
        return CURL_WRITEFUNC_ERROR;
    memcpy(more + a->n_bytes, data, n);
    a->body = more;
    a->n_bytes += n;
    more[a->n_bytes] = '\0';
    return n;
}

/* The environment names proxies, and a redirect leads elsewhere: neither is followed. */
static bool set_options(struct ctl_client *c, const char *url, const char *post_body,
                        struct curl_slist *headers, struct ctl_answer *answer, char *error)
{
    CURL *curl = c->curl;
    CURLcode rc = CURLE_OK;

    c->answer = answer;
    curl_easy_reset(curl);
#define SET(option, value) rc = rc != CURLE_OK ? rc : curl_easy_setopt(curl, option, value)
    SET(CURLOPT_ERRORBUFFER, error);
    SET(CURLOPT_UNIX_SOCKET_PATH, c->path);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(c->timeout_s * 1000));
    SET(CURLOPT_TIMEOUT_MS, c->stream_to ? 0L : (long)(c->timeout_s * 1000));
    SET(CURLOPT_USERAGENT, "nightjar-ctl");
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, take);
    SET(CURLOPT_WRITEDATA, c);
    if (post_body)
        SET(CURLOPT_POSTFIELDS, post_body);
#undef SET
    return rc == CURLE_OK;
}

static void explain(const struct ctl_client *c, CURLcode rc, const char *error, char *why,
                    size_t why_bytes)
{
    if (rc == CURLE_COULDNT_CONNECT)
        snprintf(why, why_bytes, "%s: no server accepts connections there: does it run?", c->path);
    else if (rc == CURLE_OPERATION_TIMEDOUT)
        snprintf(why, why_bytes, "%s: the server did not answer within %g s (--timeout)", c->path,
                 c->timeout_s);
    else if (rc == CURLE_WRITE_ERROR && c->stream_to)
        snprintf(why, why_bytes, "%s: the answer is malformed, or could not be written", c->path);
    else if (rc == CURLE_WRITE_ERROR)
        snprintf(why, why_bytes, "%s: the answer is too large", c->path);
    else
        snprintf(why, why_bytes, "%s: this is no answer of nightjar: %s", c->path,
                 error[0] ? error : curl_easy_strerror(rc));
}

/* What is being watched may be ready, or a signal have come. */
static CURLcode wait_for_events(struct ctl_client *c)
{
    struct curl_waitfd watched = {.fd = c->fd, .events = CURL_WAIT_POLLIN};
    unsigned n = c->ready ? 1 : 0;

    if (curl_multi_poll(c->multi, &watched, n, 1000, NULL) != CURLM_OK)
        return CURLE_OUT_OF_MEMORY;
    return c->ready && !c->ready(c->ctx) ? CURLE_ABORTED_BY_CALLBACK : CURLE_OK;
}

static CURLcode perform(struct ctl_client *c)
{
    CURLcode rc =
        curl_multi_add_handle(c->multi, c->curl) == CURLM_OK ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    int n_running = 1, n_messages;

    while (rc == CURLE_OK && n_running > 0) {
        if (curl_multi_perform(c->multi, &n_running) != CURLM_OK)
            rc = CURLE_OUT_OF_MEMORY;
        else if (n_running > 0)
            rc = wait_for_events(c);
    }
    const CURLMsg *m = curl_multi_info_read(c->multi, &n_messages);
    if (rc == CURLE_OK && m)
        rc = m->data.result;
    curl_multi_remove_handle(c->multi, c->curl);
    return rc;
}

bool ctl_request(struct ctl_client *c, const char *target, const char *post_body,
                 struct ctl_answer *answer, char *why, size_t why_bytes)
{
    char url[512], error[CURL_ERROR_SIZE] = "";
    int n = snprintf(url, sizeof url, "http://localhost%s", target);
    /* No header Expect: a body is small. */
    struct curl_slist *type = curl_slist_append(NULL, "Content-Type: text/plain; charset=utf-8");
    struct curl_slist *headers = type ? curl_slist_append(type, "Expect:") : NULL;

    *answer = (struct ctl_answer){0};
    bool ok = headers && n < (int)sizeof url &&
              set_options(c, url, post_body, post_body ? headers : NULL, answer, error);
    if (!ok) {
        snprintf(why, why_bytes, "%s",
                 n < (int)sizeof url ? "no memory" : "the request is too long");
    } else {
        CURLcode rc = perform(c);
        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &answer->status);
        ok = rc == CURLE_OK;
        if (!ok)
            explain(c, rc, error, why, why_bytes);
    }
    curl_slist_free_all(type);
    if (ok && !answer->body && !(answer->body = calloc(1, 1))) {
        snprintf(why, why_bytes, "no memory");
        ok = false;
    }
    return ok;
}

void ctl_answer_free(struct ctl_answer *answer)
{
    free(answer->body);
    *answer = (struct ctl_answer){0};
}
