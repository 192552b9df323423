/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <time.h>

#include "top/top.h"

/* --- values --------------------------------------------------------------------------------- */

static bool has_number(json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

static double number(json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *list_of(json_t *sample, const char *command, const char *key)
{
    return json_object_get(json_object_get(sample, command), key);
}

static double sum_of(json_t *list, const char *key)
{
    double sum = 0;
    json_t *one;
    size_t i;

    json_array_foreach(list, i, one) sum += number(one, key);
    return sum;
}

static void copy(json_t *to, json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);

    if (value)
        json_object_set(to, key, value);
}

/* The text, cut to what a view keeps of it. */
static void set_id(json_t *row, const char *prefix, const char *id)
{
    char whole[TOP_ID_BYTES];

    snprintf(whole, sizeof whole, "%s%s", prefix, id ? id : "");
    json_t *value = json_string(whole);
    /* It may end within a character, and a string of JSON may not. */
    for (size_t n = strlen(whole); !value && n > 0; value = json_string(whole))
        whole[--n] = '\0';
    json_object_set_new(row, "id", value);
}

/* --- what has happened between two samples -------------------------------------------------- */

struct span {
    json_t *before, *now; /* before: NULL if there is none of the same process */
    double seconds;
};

static struct span span_of(json_t *before, json_t *now)
{
    struct span s = {NULL, now, number(now, "at_s") - number(before, "at_s")};
    const char *then = text(json_object_get(before, "version"), "started"),
               *since = text(json_object_get(now, "version"), "started");

    if (before && s.seconds > 0 && (!then || !since || strcmp(then, since) == 0))
        s.before = before;
    return s;
}

/* Set NAME_per_s by a count that both objects have. A count that went back began anew. */
static void set_rate(const struct span *s, json_t *to, const char *name, json_t *before,
                     json_t *now, const char *key, double factor)
{
    double grown = number(now, key) - number(before, key);

    if (s->before && has_number(before, key) && has_number(now, key) && grown >= 0)
        json_object_set_new(to, name, json_real(grown * factor / s->seconds));
}

/* The objects of a list by a text or number in them, to find those of the sample before. */
static json_t *index_by(json_t *list, const char *key)
{
    json_t *index = json_object(), *one;
    char name[TOP_ID_BYTES];
    size_t i;

    json_array_foreach(list, i, one)
    {
        const json_t *value = json_object_get(one, key);
        snprintf(name, sizeof name, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        json_object_set(index, json_is_string(value) ? json_string_value(value) : name, one);
    }
    return index;
}

static json_t *find(json_t *index, json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    char name[TOP_ID_BYTES];

    snprintf(name, sizeof name, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return json_object_get(index, json_is_string(value) ? json_string_value(value) : name);
}

/* --- the head ------------------------------------------------------------------------------- */

static json_t *texts_of(json_t *list, const char *key)
{
    json_t *texts = json_array(), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (text(one, key))
            json_array_append(texts, json_object_get(one, key));
    }
    return texts;
}

static void set_server(json_t *model, json_t *now)
{
    json_t *version = json_object_get(now, "version");
    const char *started = text(version, "started");
    struct tm tm = {0};

    copy(model, version, "version");
    copy(model, now, "ready");
    copy(model, now, "why");
    copy(model, now, "commands");
    if (json_object_get(now, "problems"))
        json_object_set_new(model, "problems",
                            texts_of(list_of(now, "problems", "problems"), "text"));
    if (started && strptime(started, "%Y-%m-%dT%H:%M:%SZ", &tm)) {
        double up = number(now, "wall_s") - (double)timegm(&tm);
        json_object_set_new(model, "up_s", json_real(up > 0 ? up : 0));
    }
}

static json_t *lcores_of(const struct span *s)
{
    json_t *all = json_array(), *one,
           *before = index_by(list_of(s->before, "shards", "shards"), "number");
    size_t i;

    json_array_foreach(list_of(s->now, "shards", "shards"), i, one)
    {
        json_t *row = json_object(), *old = find(before, one, "number");
        double busy = number(one, "cycles_busy") - number(old, "cycles_busy"),
               idle = number(one, "cycles_idle") - number(old, "cycles_idle");
        copy(row, one, "lcore");
        if (old && busy >= 0 && idle >= 0)
            json_object_set_new(row, "busy", json_real(busy + idle > 0 ? busy / (busy + idle) : 0));
        json_array_append_new(all, row);
    }
    json_decref(before);
    return all;
}

/* An object with sums of a list, to compute rates of. */
static json_t *sums(json_t *list, const char *const *keys, size_t n)
{
    json_t *all = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(all, keys[i], json_real(sum_of(list, keys[i])));
    return all;
}

static json_t *totals_of(const struct span *s)
{
    static const char *const of_shards[] = {"requests", "connections"}, *const of_classes[] = {
                                                                            "refused", "open",
                                                                            "waiting"};
    json_t *totals = json_object();
    json_t *shards = sums(list_of(s->now, "shards", "shards"), of_shards, 2),
           *old_shards = sums(list_of(s->before, "shards", "shards"), of_shards, 2),
           *classes = sums(list_of(s->now, "classes", "classes"), of_classes, 3),
           *old_classes = sums(list_of(s->before, "classes", "classes"), of_classes, 3);
    json_t *stats = json_object_get(s->now, "stats"), *old = json_object_get(s->before, "stats");

    set_rate(s, totals, "requests_per_s", old_shards, shards, "requests", 1);
    set_rate(s, totals, "refused_per_s", old_classes, classes, "refused", 1);
    set_rate(s, totals, "tx_bits_per_s", old, stats, "tx_bytes", 8);
    set_rate(s, totals, "rx_bits_per_s", old, stats, "rx_bytes", 8);
    copy(totals, shards, "connections");
    copy(totals, classes, "open");
    copy(totals, classes, "waiting");
    json_decref(shards);
    json_decref(old_shards);
    json_decref(classes);
    json_decref(old_classes);
    return totals;
}

/* --- rows ----------------------------------------------------------------------------------- */

/* The most that a class may send. "limit_key" is what changes it: "rate" also sets the ceiling, and
 * the server then forgets the burst. */
static void set_limits(json_t *row, json_t *limits)
{
    static const char *const others[] = {"burst",      "client_rate",    "request_rate",
                                         "streams",    "client_ceiling", "request_ceiling",
                                         "connections"};
    const char *rate = text(limits, "rate"), *ceiling = text(limits, "ceiling");
    bool is_rate = rate && (!ceiling || strcmp(rate, ceiling) == 0);

    if (rate || ceiling) {
        json_object_set_new(row, "limit", json_string(is_rate ? rate : ceiling));
        json_object_set_new(row, "limit_key", json_string(is_rate ? "rate" : "ceiling"));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        copy(row, limits, others[i]);
}

/* The whole server has the sums of its classes. */
static json_t *row_of_server(const struct span *s)
{
    static const char *const keys[] = {"open",  "waiting",     "requests",     "refused",
                                       "bytes", "bytes_per_s", "throttled_ms", "requests_per_s"};
    json_t *row = sums(list_of(s->now, "classes", "classes"), keys, 8),
           *old = sums(list_of(s->before, "classes", "classes"), keys, 8);

    json_object_set_new(row, "id", json_string(""));
    json_object_set_new(row, "name", json_string("(server)"));
    json_object_set_new(row, "first", json_true());
    set_rate(s, row, "refused_per_s", old, row, "refused", 1);
    set_limits(row, list_of(s->now, "limits", "server"));
    json_decref(old);
    return row;
}

static json_t *classes_of(const struct span *s)
{
    json_t *rows = json_array(), *one, *row,
           *before = index_by(list_of(s->before, "classes", "classes"), "name"),
           *limits = index_by(list_of(s->now, "limits", "classes"), "name");
    size_t i;

    json_array_append_new(rows, row_of_server(s));
    json_array_foreach(list_of(s->now, "classes", "classes"), i, one)
    {
        if (!text(one, "name") || !(row = json_copy(one)))
            continue;
        set_id(row, "", text(one, "name"));
        set_rate(s, row, "refused_per_s", find(before, one, "name"), one, "refused", 1);
        set_limits(row, find(limits, one, "name"));
        json_array_append_new(rows, row);
    }
    json_decref(before);
    json_decref(limits);
    return rows;
}

static json_t *clients_of(const struct span *s)
{
    json_t *rows = json_array(), *one, *row,
           *before = index_by(list_of(s->before, "clients", "clients"), "key");
    size_t i;

    json_array_foreach(list_of(s->now, "clients", "clients"), i, one)
    {
        json_t *old = find(before, one, "key");
        if (!json_is_object(one) || !(row = json_copy(one)))
            continue;
        set_id(row, "", text(one, "key"));
        set_rate(s, row, "bytes_per_s", old, one, "bytes", 1);
        set_rate(s, row, "requests_per_s", old, one, "requests", 1);
        set_rate(s, row, "refused_per_s", old, one, "refused", 1);
        json_array_append_new(rows, row);
    }
    json_decref(before);
    return rows;
}

static json_t *transfers_of(const struct span *s)
{
    json_t *rows = json_array(), *one, *row;
    size_t i;

    json_array_foreach(list_of(s->now, "transfers", "transfers"), i, one)
    {
        char client[100];
        if (!json_is_object(one) || !(row = json_copy(one)))
            continue;
        snprintf(client, sizeof client, "%s ", text(one, "client") ? text(one, "client") : "");
        if (text(one, "id"))
            set_id(row, "", text(one, "id"));
        else
            set_id(row, client, text(one, "path"));
        if (number(one, "bytes_per_s") > 0 && has_number(one, "bytes_left"))
            json_object_set_new(row, "left_s",
                                json_real(number(one, "bytes_left") / number(one, "bytes_per_s")));
        json_array_append_new(rows, row);
    }
    return rows;
}

static void add_reasons(const struct span *s, const char *command, const char *what, json_t *rows)
{
    json_t *one, *row, *before = index_by(list_of(s->before, command, "reasons"), "name");
    bool was_asked = json_object_get(s->before, command) != NULL;
    size_t i;

    json_array_foreach(list_of(s->now, command, "reasons"), i, one)
    {
        json_t *old = find(before, one, "name");
        if (!text(one, "name") || !(row = json_copy(one)))
            continue;
        /* A reason that was not there before had a count of 0. */
        json_t *zero = json_pack("{s:i}", "count", 0);
        set_id(row, what, text(one, "name"));
        json_object_set_new(row, "what", json_string(what));
        set_rate(s, row, "per_s", old || !was_asked ? old : zero, one, "count", 1);
        if (json_is_true(json_object_get(one, "others")))
            json_object_set_new(row, "others", json_string("and others"));
        else
            json_object_del(row, "others");
        json_decref(zero);
        json_array_append_new(rows, row);
    }
    json_decref(before);
}

static json_t *refusals_of(const struct span *s)
{
    json_t *rows = json_array();

    add_reasons(s, "refused", "refused", rows);
    add_reasons(s, "abuse", "abuse", rows);
    return rows;
}

/* --- all ------------------------------------------------------------------------------------ */

/* Each panel, and the command without which there is none. */
static const struct {
    json_t *(*rows)(const struct span *);
    const char *command;
} made_of[TOP_N_PANELS] = {[TOP_CLASSES] = {classes_of, "classes"},
                           [TOP_CLIENTS] = {clients_of, "clients"},
                           [TOP_TRANSFERS] = {transfers_of, "transfers"},
                           [TOP_REFUSALS] = {refusals_of, "refused"}};

json_t *top_model(json_t *before, json_t *now)
{
    struct span s = span_of(before, now);
    json_t *model = json_object();

    set_server(model, now);
    json_object_set_new(model, "lcores", lcores_of(&s));
    json_object_set_new(model, "totals", totals_of(&s));
    for (unsigned i = 0; i < TOP_N_PANELS; i++)
        if (json_object_get(now, made_of[i].command))
            json_object_set_new(model, top_panels[i].key, made_of[i].rows(&s));
    return model;
}

bool top_model_has(json_t *model, enum top_panel panel)
{
    json_t *one;
    size_t i;

    json_array_foreach(json_object_get(model, "commands"), i, one)
    {
        const char *name = json_string_value(one);
        if (name && strcmp(name, made_of[panel].command) == 0)
            return true;
    }
    return false;
}

json_t *top_model_rows(json_t *model, enum top_panel panel)
{
    return json_object_get(model, top_panels[panel].key);
}
