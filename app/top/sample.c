/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "ctl/ctl.h"
#include "top/top.h"

#define ALWAYS        TOP_N_PANELS
#define CLIENTS_MAX   "200"
#define TRANSFERS_MAX "1000"
#define TARGET_BYTES  200u

static double now_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The reason that an answer has, or its first line. */
static void explain(const char *target, const struct ctl_answer *a, char *why, size_t why_bytes)
{
    json_t *root = json_loads(a->body, 0, NULL);
    const char *error = json_string_value(json_object_get(root, "error"));

    if (error)
        snprintf(why, why_bytes, "%s", error);
    else
        snprintf(why, why_bytes, "%s: the server answers %ld: %.*s", target, a->status,
                 (int)strcspn(a->body, "\r\n"), a->body);
    json_decref(root);
}

static bool is_success(const struct ctl_answer *a)
{
    return a->status >= 200 && a->status < 300;
}

/* An answer that is an object of JSON, which the caller frees. NULL: there is none. */
static json_t *get(struct ctl_client *client, const char *target, char *why, size_t why_bytes)
{
    struct ctl_answer a;
    json_t *root = NULL;

    if (ctl_request(client, target, NULL, &a, why, why_bytes)) {
        root = is_success(&a) ? json_loads(a.body, JSON_REJECT_DUPLICATES, NULL) : NULL;
        if (!is_success(&a))
            explain(target, &a, why, why_bytes);
        else if (!json_is_object(root))
            snprintf(why, why_bytes, "%s: the answer is no object of JSON", target);
    }
    ctl_answer_free(&a);
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

/* Its text has a line for each reason why the server is not ready. */
static bool add_ready(struct ctl_client *client, json_t *sample, char *why, size_t why_bytes)
{
    json_t *reasons = json_array();
    struct ctl_answer a;
    bool ok = ctl_request(client, "/ready", NULL, &a, why, why_bytes);

    if (ok && !is_success(&a) && a.status != 503) {
        explain("/ready", &a, why, why_bytes);
        ok = false;
    }
    for (const char *line = a.body; ok && !is_success(&a) && *line;) {
        size_t n = strcspn(line, "\r\n");
        if (n > 0)
            json_array_append_new(reasons, json_stringn(line, n));
        line += n + (line[n] != '\0');
    }
    json_object_set_new(sample, "ready", json_boolean(ok && is_success(&a)));
    json_object_set_new(sample, "why", reasons);
    ctl_answer_free(&a);
    return ok;
}

static bool add_commands(struct ctl_client *client, json_t *sample, char *why, size_t why_bytes)
{
    json_t *root = get(client, "/api/v1", why, why_bytes), *names = json_array(), *one;
    size_t i;

    json_array_foreach(json_object_get(root, "commands"), i, one)
    {
        json_t *name = json_object_get(one, "name");
        if (json_is_string(name))
            json_array_append(names, name);
    }
    json_object_set_new(sample, "commands", names);
    json_decref(root);
    return root != NULL;
}

static bool has_command(json_t *sample, const char *name)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(sample, "commands"), i, one)
    {
        if (strcmp(json_string_value(one), name) == 0)
            return true;
    }
    return false;
}

json_t *top_sample(struct ctl_client *client, const struct top_query *query, char *why,
                   size_t why_bytes)
{
    static const struct {
        const char *name;
        unsigned panel;
    } parts[] = {{"shards", ALWAYS},           {"stats", ALWAYS},         {"classes", ALWAYS},
                 {"limits", ALWAYS},           {"problems", ALWAYS},      {"clients", TOP_CLIENTS},
                 {"transfers", TOP_TRANSFERS}, {"refused", TOP_REFUSALS}, {"abuse", TOP_REFUSALS}};
    json_t *sample = json_object(), *answer;
    char target[TARGET_BYTES];

    bool ok = add_ready(client, sample, why, why_bytes);
    if (ok && (answer = get(client, "/version", why, why_bytes)))
        json_object_set_new(sample, "version", answer);
    ok = ok && json_object_get(sample, "version") && add_commands(client, sample, why, why_bytes);
    json_object_set_new(sample, "at_s", json_real(now_s(CLOCK_MONOTONIC)));
    json_object_set_new(sample, "wall_s", json_real(now_s(CLOCK_REALTIME)));
    for (size_t i = 0; ok && i < NJ_ARRAY_LEN(parts); i++) {
        bool is_wanted = parts[i].panel == ALWAYS || query->has_all_panels ||
                         parts[i].panel == (unsigned)query->panel;
        if (!is_wanted || !has_command(sample, parts[i].name))
            continue;
        snprintf(target, sizeof target, "/api/v1/%s%s%s", parts[i].name,
                 parts[i].panel == TOP_CLIENTS     ? "?limit=" CLIENTS_MAX "&by="
                 : parts[i].panel == TOP_TRANSFERS ? "?limit=" TRANSFERS_MAX
                                                   : "",
                 parts[i].panel == TOP_CLIENTS ? query->clients_by : "");
        answer = get(client, target, why, why_bytes);
        ok = answer != NULL;
        if (ok)
            json_object_set_new(sample, parts[i].name, answer);
    }
    if (ok)
        return sample;
    json_decref(sample);
    return NULL;
}

/* Did the server take a command that not all lcores have carried out? */
static bool is_unanswered(const struct ctl_answer *a)
{
    json_t *root = json_loads(a->body, 0, NULL);
    bool is = json_integer_value(json_object_get(root, "lcores_missing")) > 0;

    json_decref(root);
    return is;
}

bool top_post(struct ctl_client *client, const char *target, const char *body, char *why,
              size_t why_bytes)
{
    struct ctl_answer a;
    bool ok = ctl_request(client, target, body, &a, why, why_bytes);

    if (ok && !is_success(&a)) {
        explain(target, &a, why, why_bytes);
        ok = false;
    } else if (ok && is_unanswered(&a)) {
        snprintf(why, why_bytes, "an lcore has not answered; it may do it later");
        ok = false;
    }
    ctl_answer_free(&a);
    return ok;
}
