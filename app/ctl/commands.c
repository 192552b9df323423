/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands: what each asks the server, and how it prints the answer. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define TARGET_BYTES 400

static enum ctl_status fail(enum ctl_status status, const char *fmt, ...) NJ_PRINTF(2, 3);
static enum ctl_status fail(enum ctl_status status, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fputs("nightjar ctl: ", stderr);
    ctl_print_text(stderr, text);
    fputc('\n', stderr);
    return status;
}

/* --- asking --------------------------------------------------------------------------------- */

static bool is_success(const struct ctl_answer *a)
{
    return a->status >= 200 && a->status < 300;
}

void ctl_print_reasons(const struct ctl_answer *a)
{
    json_t *root = json_loads(a->body, 0, NULL), *value;
    const char *one = json_string_value(json_object_get(root, "error"));
    json_t *all = json_object_get(root, "errors");
    size_t i;

    if (one)
        fail(CTL_REFUSED, "%s", one);
    json_array_foreach(all, i, value)
    {
        if (json_is_string(value))
            fail(CTL_REFUSED, "%s", json_string_value(value));
    }
    if (!one && json_array_size(all) == 0)
        fail(CTL_REFUSED, "the server answers %ld: %.*s", a->status, (int)strcspn(a->body, "\r\n"),
             a->body);
    json_decref(root);
}

/* GET, or POST with `body`. The answer is one of success, or else the reasons are printed. */
static enum ctl_status ask(struct ctl *c, const char *target, const char *body,
                           struct ctl_answer *answer)
{
    char why[512];

    if (!ctl_request(c->client, target, body, answer, why, sizeof why))
        return fail(CTL_UNREACHABLE, "%s", why);
    if (is_success(answer))
        return CTL_OK;
    ctl_print_reasons(answer);
    return CTL_REFUSED;
}

/* The same, for an answer that is an object of JSON. The caller frees *root. */
static enum ctl_status ask_json(struct ctl *c, const char *target, const char *body, json_t **root)
{
    struct ctl_answer answer;
    enum ctl_status status = ask(c, target, body, &answer);
    json_error_t error;

    *root = NULL;
    if (status == CTL_OK) {
        *root = json_loads(answer.body, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(*root))
            status = fail(CTL_UNREACHABLE, "%s: the answer is no object of JSON", target);
    }
    ctl_answer_free(&answer);
    return status;
}

static void print_json(json_t *root)
{
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
}

/* "/api/v1/NAME?A&B" of the arguments from `from` on. */
static enum ctl_status make_target(const struct ctl *c, const char *name, int from,
                                   char target[TARGET_BYTES])
{
    int n = snprintf(target, TARGET_BYTES, "/api/v1/%s", name);

    for (int i = from; i < c->argc && n < TARGET_BYTES; i++)
        n += snprintf(target + n, TARGET_BYTES - (size_t)n, "%c%s", i == from ? '?' : '&',
                      c->argv[i]);
    if (n >= TARGET_BYTES)
        return fail(CTL_USAGE, "the arguments are too long");
    for (const char *p = target; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("/?&=,_.:-", *p))
            return fail(CTL_USAGE, "%c: a name or parameter has letters, digits and _ = , . : / -",
                        isprint((unsigned char)*p) ? *p : '?');
    return CTL_OK;
}

/* Ask for a command of the API. Its parameters are the arguments from `from` on. */
static enum ctl_status get(struct ctl *c, const char *name, int from, json_t **root)
{
    char target[TARGET_BYTES];
    enum ctl_status status = make_target(c, name, from, target);

    *root = NULL;
    return status == CTL_OK ? ask_json(c, target, NULL, root) : status;
}

/* Print a list of an answer as a table. */
static enum ctl_status show_table(struct ctl *c, const char *name, const struct ctl_column *columns,
                                  size_t n)
{
    json_t *root;
    enum ctl_status status = get(c, name, 0, &root);

    if (status == CTL_OK && c->json)
        print_json(root);
    else if (status == CTL_OK)
        ctl_print_table(stdout, json_object_get(root, name), columns, n);
    json_decref(root);
    return status;
}

/* --- tables --------------------------------------------------------------------------------- */

static enum ctl_status run_clients(struct ctl *c)
{
    static const struct ctl_column columns[] = {
        {"client", "client", CTL_PLAIN},      {"connections", "connections", CTL_PLAIN},
        {"streams", "streams", CTL_PLAIN},    {"requests", "requests", CTL_PLAIN},
        {"refused", "refused", CTL_PLAIN},    {"bytes", "sent", CTL_BYTES},
        {"throttled_ms", "throttled", CTL_MS}};

    return show_table(c, "clients", columns, NJ_ARRAY_LEN(columns));
}

static const struct ctl_column class_columns[] = {{"name", "class", CTL_PLAIN},
                                                  {"open", "open", CTL_PLAIN},
                                                  {"waiting", "waiting", CTL_PLAIN},
                                                  {"requests_per_s", "requests/s", CTL_PLAIN},
                                                  {"bytes_per_s", "rate", CTL_BYTES_PER_S},
                                                  {"requests", "requests", CTL_PLAIN},
                                                  {"refused", "refused", CTL_PLAIN},
                                                  {"bytes", "sent", CTL_BYTES},
                                                  {"throttled_ms", "throttled", CTL_MS}};

static enum ctl_status run_classes(struct ctl *c)
{
    return show_table(c, "classes", class_columns, NJ_ARRAY_LEN(class_columns));
}

static const struct ctl_column shard_columns[] = {{"number", "shard", CTL_PLAIN},
                                                  {"lcore", "lcore", CTL_PLAIN},
                                                  {"port", "port", CTL_PLAIN},
                                                  {"steering", "steering", CTL_PLAIN},
                                                  {"connections", "connections", CTL_PLAIN},
                                                  {"requests", "requests", CTL_PLAIN},
                                                  {"rx_packets", "received", CTL_PLAIN},
                                                  {"tx_packets", "sent", CTL_PLAIN},
                                                  {"rx_drops", "rx drops", CTL_PLAIN},
                                                  {"tx_drops", "tx drops", CTL_PLAIN},
                                                  {"rx_mbufs_used", "rx mbufs", CTL_PLAIN},
                                                  {"tx_mbufs_used", "tx mbufs", CTL_PLAIN}};

static enum ctl_status run_shards(struct ctl *c)
{
    return show_table(c, "shards", shard_columns, NJ_ARRAY_LEN(shard_columns));
}

static enum ctl_status run_get(struct ctl *c)
{
    json_t *root;
    enum ctl_status status =
        c->argc > 0 ? get(c, c->argv[0], 1, &root) : ask_json(c, "/api/v1", NULL, &root);

    if (status == CTL_OK && c->json)
        print_json(root);
    else if (status == CTL_OK)
        ctl_print_object(stdout, root);
    json_decref(root);
    return status;
}

/* --- transfers and blocks -------------------------------------------------------------------- */

static const struct ctl_column block_columns[] = {{"network", "network", CTL_PLAIN},
                                                  {"seconds_left", "seconds left", CTL_PLAIN}};

static enum ctl_status run_transfers(struct ctl *c)
{
    static const struct ctl_column columns[] = {
        {"id", "id", CTL_PLAIN},           {"client", "client", CTL_PLAIN},
        {"class", "class", CTL_PLAIN},     {"bytes_per_s", "rate", CTL_BYTES_PER_S},
        {"bytes_done", "done", CTL_BYTES}, {"bytes_left", "left", CTL_BYTES},
        {"why", "why", CTL_PLAIN},         {"path", "path", CTL_PLAIN}};

    return show_table(c, "transfers", columns, NJ_ARRAY_LEN(columns));
}

static enum ctl_status run_kill(struct ctl *c)
{
    json_t *root;
    enum ctl_status status = ask_json(c, "/api/v1/transfers/end", c->argv[0], &root);

    if (status == CTL_OK && json_integer_value(json_object_get(root, "lcores_missing")) > 0)
        status = fail(CTL_REFUSED, "an lcore has not answered; it may end transfers later");
    if (root && c->json)
        print_json(root);
    else if (root)
        printf("%" JSON_INTEGER_FORMAT " ended\n",
               json_integer_value(json_object_get(root, "ended")));
    json_decref(root);
    return status;
}

static enum ctl_status run_blocks(struct ctl *c)
{
    return show_table(c, "blocks", block_columns, NJ_ARRAY_LEN(block_columns));
}

static enum ctl_status change_blocks(struct ctl *c, const char *target, const char *what)
{
    json_t *root;
    enum ctl_status status = ask_json(c, target, what, &root);

    if (status == CTL_OK && c->json)
        print_json(root);
    else if (status == CTL_OK)
        ctl_print_table(stdout, json_object_get(root, "blocks"), block_columns,
                        NJ_ARRAY_LEN(block_columns));
    json_decref(root);
    return status;
}

static enum ctl_status run_block(struct ctl *c)
{
    char what[256];
    int n = snprintf(what, sizeof what, "%s%s%s", c->argv[0], c->for_time ? "," : "",
                     c->for_time ? c->for_time : "");

    return n < (int)sizeof what ? change_blocks(c, "/api/v1/block", what)
                                : fail(CTL_USAGE, "the arguments are too long");
}

static enum ctl_status run_unblock(struct ctl *c)
{
    return change_blocks(c, "/api/v1/unblock", c->argv[0]);
}

/* --- limits --------------------------------------------------------------------------------- */

/* A row for the server, and one for each class. */
static void print_limits(json_t *root)
{
    json_t *rows = json_array(), *server = json_object(), *classes, *one;
    size_t i;

    json_object_set_new(server, "name", json_string("(server)"));
    json_object_update(server, json_object_get(root, "server"));
    json_array_append_new(rows, server);
    classes = json_object_get(root, "classes");
    json_array_foreach(classes, i, one) json_array_append(rows, one);
    ctl_print_table(stdout, rows, NULL, 0);
    json_decref(rows);
}

/* What was changed at run time, if anything was. */
static void print_changes(json_t *root)
{
    static const struct ctl_column columns[] = {{"class", "class", CTL_PLAIN},
                                                {"key", "changed", CTL_PLAIN},
                                                {"value", "value", CTL_PLAIN},
                                                {"seconds_left", "seconds left", CTL_PLAIN},
                                                {"then", "then", CTL_PLAIN}};
    json_t *changes = json_object_get(root, "changes");

    if (json_array_size(changes) == 0)
        return;
    putchar('\n');
    ctl_print_table(stdout, changes, columns, NJ_ARRAY_LEN(columns));
}

/* The arguments with a comma between them. False: too long. */
static bool join_changes(const struct ctl *c, char *text, size_t size)
{
    size_t n = 0;

    for (int i = 0; i < c->argc && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? "," : "", c->argv[i]);
    if (c->for_time && n < size)
        n += (size_t)snprintf(text + n, size - n, ",for=%s", c->for_time);
    return n < size;
}

static enum ctl_status run_limits(struct ctl *c)
{
    char change[2048];
    json_t *root;

    if (!join_changes(c, change, sizeof change))
        return fail(CTL_USAGE, "the change is too long");
    enum ctl_status status = ask_json(c, "/api/v1/limits", c->argc > 0 ? change : NULL, &root);
    if (status == CTL_OK && c->json) {
        print_json(root);
    } else if (status == CTL_OK) {
        print_limits(root);
        print_changes(root);
    }
    json_decref(root);
    return status;
}

/* --- the server ----------------------------------------------------------------------------- */

/* An answer as it is, except for control characters at a terminal. */
static enum ctl_status print_body(struct ctl *c, const char *target)
{
    struct ctl_answer answer;
    enum ctl_status status = ask(c, target, NULL, &answer);

    if (status == CTL_OK) {
        if (isatty(STDOUT_FILENO))
            ctl_print_text(stdout, answer.body);
        else
            fwrite(answer.body, 1, answer.n_bytes, stdout);
        if (answer.n_bytes > 0 && answer.body[answer.n_bytes - 1] != '\n')
            putchar('\n');
    }
    ctl_answer_free(&answer);
    return status;
}

static enum ctl_status run_metrics(struct ctl *c)
{
    return print_body(c, "/metrics");
}

static enum ctl_status run_version(struct ctl *c)
{
    json_t *root;
    enum ctl_status status = ask_json(c, "/version", NULL, &root);

    if (status == CTL_OK && c->json)
        print_json(root);
    else if (status == CTL_OK)
        ctl_print_object(stdout, root);
    json_decref(root);
    return status;
}

static enum ctl_status run_reload(struct ctl *c)
{
    struct ctl_answer answer;
    enum ctl_status status = ask(c, "/api/v1/reload", "", &answer);

    if (status == CTL_OK && c->json)
        puts("{\"reloaded\": true}");
    else if (status == CTL_OK)
        puts("reloaded");
    ctl_answer_free(&answer);
    return status;
}

static json_int_t sum_of(json_t *list, const char *key)
{
    json_int_t sum = 0;
    json_t *one;
    size_t i;

    json_array_foreach(list, i, one) sum += json_integer_value(json_object_get(one, key));
    return sum;
}

static void print_status(json_t *status)
{
    static const struct ctl_column ports[] = {
        {"number", "port", CTL_PLAIN},         {"device", "device", CTL_PLAIN},
        {"driver", "driver", CTL_PLAIN},       {"link", "link", CTL_PLAIN},
        {"link_mbps", "Mbit/s", CTL_PLAIN},    {"rx_missed", "missed", CTL_PLAIN},
        {"rx_nombuf", "no buffer", CTL_PLAIN}, {"rx_errors", "rx errors", CTL_PLAIN},
        {"tx_errors", "tx errors", CTL_PLAIN}};
    static const struct ctl_column addresses[] = {{"address", "address", CTL_PLAIN},
                                                  {"prefix", "prefix", CTL_PLAIN},
                                                  {"state", "state", CTL_PLAIN}};
    json_t *shards = json_object_get(status, "shards"),
           *classes = json_object_get(status, "classes");
    const char *version = json_string_value(json_object_get(status, "version")),
               *started = json_string_value(json_object_get(status, "started"));
    json_t *problem;
    size_t i;

    fputs("nightjar ", stdout);
    ctl_print_text(stdout, version ? version : "?");
    if (started) {
        fputs(", started ", stdout);
        ctl_print_text(stdout, started);
    }
    puts(json_is_true(json_object_get(status, "ready")) ? ": ready" : ": NOT READY");
    json_array_foreach(json_object_get(status, "problems"), i, problem)
    {
        const char *text = json_string_value(json_object_get(problem, "text"));
        fputs("  ", stdout);
        ctl_print_text(stdout, text ? text : "?");
        putchar('\n');
    }
    printf("%zu shards, %" JSON_INTEGER_FORMAT " connections, %" JSON_INTEGER_FORMAT
           " requests, %" JSON_INTEGER_FORMAT " open, %" JSON_INTEGER_FORMAT " refused\n\n",
           json_array_size(shards), sum_of(shards, "connections"), sum_of(shards, "requests"),
           sum_of(classes, "open"), sum_of(classes, "refused"));
    ctl_print_table(stdout, json_object_get(status, "addresses"), addresses,
                    NJ_ARRAY_LEN(addresses));
    putchar('\n');
    ctl_print_table(stdout, json_object_get(status, "ports"), ports, NJ_ARRAY_LEN(ports));
    putchar('\n');
    ctl_print_table(stdout, shards, shard_columns, NJ_ARRAY_LEN(shard_columns));
    putchar('\n');
    ctl_print_table(stdout, classes, class_columns, NJ_ARRAY_LEN(class_columns));
}

static enum ctl_status run_status(struct ctl *c)
{
    static const char *const parts[] = {"/version",     "/api/v1/problems", "/api/v1/addresses",
                                        "/api/v1/port", "/api/v1/shards",   "/api/v1/classes"};
    json_t *all = json_object(), *one;
    struct ctl_answer answer;
    char why[512];
    enum ctl_status status = CTL_OK;

    if (!ctl_request(c->client, "/ready", NULL, &answer, why, sizeof why))
        status = fail(CTL_UNREACHABLE, "%s", why);
    bool is_ready = status == CTL_OK && is_success(&answer);
    ctl_answer_free(&answer);
    for (size_t i = 0; status == CTL_OK && i < NJ_ARRAY_LEN(parts); i++) {
        status = ask_json(c, parts[i], NULL, &one);
        if (status == CTL_OK)
            json_object_update(all, one);
        json_decref(one);
    }
    if (status == CTL_OK) {
        json_object_set_new(all, "ready", json_boolean(is_ready));
        if (c->json)
            print_json(all);
        else
            print_status(all);
        status = is_ready ? CTL_OK : CTL_REFUSED;
    }
    json_decref(all);
    return status;
}

enum ctl_status ctl_run(struct ctl *c, enum ctl_command_id command)
{
    static enum ctl_status (*const run[CTL_N_COMMANDS])(struct ctl *) = {
        [CTL_CMD_STATUS] = run_status,   [CTL_CMD_LIMITS] = run_limits,
        [CTL_CMD_CLIENTS] = run_clients, [CTL_CMD_CLASSES] = run_classes,
        [CTL_CMD_SHARDS] = run_shards,   [CTL_CMD_TRANSFERS] = run_transfers,
        [CTL_CMD_KILL] = run_kill,       [CTL_CMD_BLOCKS] = run_blocks,
        [CTL_CMD_BLOCK] = run_block,     [CTL_CMD_UNBLOCK] = run_unblock,
        [CTL_CMD_GET] = run_get,         [CTL_CMD_RELOAD] = run_reload,
        [CTL_CMD_METRICS] = run_metrics, [CTL_CMD_VERSION] = run_version,
        [CTL_CMD_CAPTURE] = ctl_capture, [CTL_CMD_TRACE] = ctl_trace,
        [CTL_CMD_DIFF] = ctl_run_diff,
    };

    return run[command](c);
}
