/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/json_document.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "mgmt/answers.h"
#include "mgmt/blocks.h"
#include "mgmt/transfers.h"

/* Parameters of a command, in the order in which it has them; NULL: not given. */
struct params {
    struct {
        const char *p;
        size_t n;
    } value[NJ__COMMAND_PARAMS_MAX];
};

/* The parameter with that name, which may end with '='; `n` 0: the next one that has no name in
 * telemetry. -1: there is none. */
static int find_param(const struct nj__command *c, const struct params *given, const char *name,
                      size_t n)
{
    for (int i = 0; i < NJ__COMMAND_PARAMS_MAX && c->param[i]; i++) {
        size_t n_name = strcspn(c->param[i], "=");
        bool is_named = c->param[i][n_name] == '=';
        if (n > 0 ? n == n_name && memcmp(name, c->param[i], n) == 0
                  : !is_named && !given->value[i].p)
            return i;
    }
    return -1;
}

static bool read_params(const struct nj__command *c, const char *text, struct params *given)
{
    while (*text) {
        size_t n = strcspn(text, "&,");
        const char *equals = memchr(text, '=', n);
        const char *value = equals ? equals + 1 : text;
        size_t n_value = (size_t)(text + n - value);
        int i = find_param(c, given, text, equals ? (size_t)(equals - text) : 0);
        if (i < 0 || given->value[i].p || n_value == 0 || equals == text)
            return false;
        given->value[i].p = value;
        given->value[i].n = n_value;
        text += n;
        if (*text && !*++text) /* nothing follows the separator */
            return false;
    }
    return true;
}

/* Appends to the text of `size` bytes. False: there is no room. */
static bool append(char *to, size_t size, const char *text, size_t n)
{
    size_t at = strlen(to);

    if (n >= size - at)
        return false;
    memcpy(to + at, text, n);
    to[at + n] = '\0';
    return true;
}

/* The parameters as telemetry has them. False: they are invalid. */
static bool translate_params(const struct nj__command *c, const char *text, char *to, size_t size)
{
    struct params given = {0};
    bool ok = read_params(c, text, &given);

    *to = '\0';
    for (int i = 0; ok && i < NJ__COMMAND_PARAMS_MAX; i++) {
        if (!given.value[i].p)
            continue;
        bool is_named = strchr(c->param[i], '=');
        if (!is_named && i > 0 && !given.value[i - 1].p)
            return false; /* its place is after that of the one before */
        ok = (!*to || append(to, size, ",", 1)) &&
             (!is_named || append(to, size, c->param[i], strlen(c->param[i]))) &&
             append(to, size, given.value[i].p, given.value[i].n);
    }
    return ok;
}

bool nj__document_write_json(const struct nj__document *doc, FILE *out)
{
    if (doc->is_incomplete)
        return false;
    char *text = json_dumps(doc->root, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (!text)
        return false;
    fwrite(text, 1, strlen(text), out);
    fwrite("\n", 1, 1, out);
    free(text);
    return true;
}

bool nj__mgmt_write_json(const struct nj_mgmt_view *v, const char *name, const char *params,
                         FILE *out)
{
    const struct nj__command *c = nj__command_find(name);
    struct nj__document doc;
    char translated[128];

    if (!c || !translate_params(c, params ? params : "", translated, sizeof translated))
        return false;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);
    bool ok =
        c->answer(v, *translated ? translated : NULL, root) && nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    return ok;
}

const char *nj__mgmt_parameters_of(const char *name, char *to, size_t size)
{
    const struct nj__command *c = nj__command_find(name);

    if (!c)
        return NULL;
    snprintf(to, size, "%s", c->param[0] ? "" : "none");
    for (uint32_t k = 0; k < NJ__COMMAND_PARAMS_MAX && c->param[k]; k++) {
        (void)append(to, size, " and ", k ? strlen(" and ") : 0);
        (void)append(to, size, c->param[k], strcspn(c->param[k], "="));
    }
    return to;
}

bool nj__mgmt_write_json_commands(FILE *out)
{
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);
    struct nj__doc list = nj__doc_list(root, "commands", "");
    char path[64];

    for (size_t i = 0; i < nj__n_commands; i++) {
        const struct nj__command *c = &nj__commands[i];
        struct nj__doc one = nj__doc_named_item(list, c->name);
        snprintf(path, sizeof path, "/api/v1/%s", c->name);
        nj__doc_text(one, "path", path);
        nj__doc_text(one, "help", c->help);
        struct nj__doc names = nj__doc_list(one, "parameters", "");
        for (uint32_t k = 0; k < NJ__COMMAND_PARAMS_MAX && c->param[k]; k++) {
            snprintf(path, sizeof path, "%.*s", (int)strcspn(c->param[k], "="), c->param[k]);
            nj__doc_item_text(names, k, path);
        }
    }
    bool ok = nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    return ok;
}

/* --- changes --------------------------------------------------------------------------------- */

static unsigned refuse(unsigned status, const char *why, FILE *out)
{
    struct nj__document doc;

    nj__doc_text(nj__document_begin(&doc, NJ__DOCUMENT_JSON), "error", why);
    if (!nj__document_write_json(&doc, out))
        fputs("{\"error\":\"nothing has changed; there is no memory for the reason\"}\n", out);
    nj__document_end(&doc);
    return status;
}

/* The status of a change that was made. */
static unsigned changed(bool is_written, FILE *out)
{
    if (is_written)
        return 200;
    fputs("{\"error\":\"the change was made, but there is no memory for the answer\"}\n", out);
    return 500;
}

unsigned nj__mgmt_change_limits(const struct nj_mgmt_view *v, const char *change, FILE *out)
{
    char why[256] = "";

    if (!v->hooks.change_limits(v->hooks.ctx, change, why, sizeof why))
        return refuse(422, why, out);
    return changed(nj__mgmt_write_json(v, "limits", NULL, out), out);
}

static void add_lines(struct nj__doc list, char *lines)
{
    char *save = NULL;
    uint32_t n = 0;

    for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        nj__doc_item_text(list, n++, line);
}

unsigned nj__mgmt_reload(const struct nj_mgmt_view *v, FILE *out)
{
    char none[] = "no memory for the errors: the log has them", *errors = NULL;
    bool ok = v->hooks.reload(v->hooks.ctx, &errors);
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);

    nj__doc_bool(root, "ok", ok);
    struct nj__doc list = nj__doc_list(root, "errors", "error");
    if (!ok)
        add_lines(list, errors ? errors : none);
    bool is_written = nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    free(errors);
    if (ok)
        return changed(is_written, out);
    return is_written ? 422 : refuse(422, none, out);
}

unsigned nj__mgmt_reopen_log(const struct nj_mgmt_view *v, FILE *out)
{
    bool has_log = v->hooks.reopen_log(v->hooks.ctx);
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);

    nj__doc_bool(root, "ok", true);
    nj__doc_bool(root, "access_log", has_log);
    bool is_written = nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    return changed(is_written, out);
}

/* --- transfers and blocks -------------------------------------------------------------------- */

static unsigned write_ended(uint32_t n_ended, uint32_t n_missing, FILE *out)
{
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);

    nj__doc_uint(root, "ended", n_ended);
    nj__doc_uint(root, "lcores_missing", n_missing);
    bool is_written = nj__document_write_json(&doc, out);
    nj__document_end(&doc);
    return changed(is_written, out);
}

static unsigned end_transfer(const struct nj_mgmt_view *v, const struct nj_transfer_id *id,
                             FILE *out)
{
    switch (nj_mgmt_transfer_end(v->transfers, id, NJ_MGMT_WAIT_DEFAULT)) {
    case NJ_MGMT_ENDED:
        return write_ended(1, 0, out);
    case NJ_MGMT_NO_ANSWER:
        return write_ended(0, 1, out);
    case NJ_MGMT_NOT_RUNNING:
        break;
    }
    return refuse(404, "no such transfer: it has ended already, or the id is wrong", out);
}

unsigned nj__mgmt_end_transfers(const struct nj_mgmt_view *v, const char *what, FILE *out)
{
    struct nj_transfer_id id;
    struct nj_net net;

    if (nj_transfer_id_parse(what, strlen(what), &id))
        return end_transfer(v, &id, out);
    if (!nj_mgmt_parse_network(what, strlen(what), &net))
        return refuse(422, "expected the id of a transfer, an address, or a network", out);
    if (!nj_net_has(&net, &net.addr))
        return refuse(422, "bits after the prefix are set", out);
    struct nj_mgmt_network_end end = nj_mgmt_network_end(v->transfers, &net, NJ_MGMT_WAIT_DEFAULT);
    return write_ended(end.n_ended, end.n_missing, out);
}

static unsigned write_blocks(const struct nj_mgmt_view *v, FILE *out)
{
    return changed(nj__mgmt_write_json(v, "blocks", NULL, out), out);
}

unsigned nj__mgmt_block_network(const struct nj_mgmt_view *v, const char *what, FILE *out)
{
    size_t n = strcspn(what, ",");
    struct nj_net net;
    double seconds = 0;
    char why[256];

    if (!nj_mgmt_parse_network(what, n, &net) ||
        (what[n] && (!nj_parse_seconds(what + n + 1, &seconds) || seconds < 1)))
        return refuse(422,
                      "expected an address or a network, and perhaps a time from 1s on: "
                      "198.18.0.0/24,10m",
                      out);
    if (seconds > NJ_BLOCK_SECONDS_MAX)
        return refuse(422, "expected a time of at most 366d", out);
    if (!nj_mgmt_block(v, &net, (uint32_t)seconds, why, sizeof why))
        return refuse(422, why, out);
    return write_blocks(v, out);
}

unsigned nj__mgmt_unblock_network(const struct nj_mgmt_view *v, const char *what, FILE *out)
{
    struct nj_net net;
    char why[256];

    if (!nj_mgmt_parse_network(what, strlen(what), &net))
        return refuse(422, "expected an address or a network", out);
    if (!nj_mgmt_unblock(v, &net, why, sizeof why))
        return refuse(422, why, out);
    return write_blocks(v, out);
}
