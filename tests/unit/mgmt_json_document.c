/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of one shard as JSON, and the parameters that URLs have. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings_validate.h"
#include "mgmt/answers.h"
#include "mgmt/json_document.h"
#include "support/scratch.h"
#include "support/shard_rig.h"

static struct nj_server_config config;
static struct nj_settings settings;
static pthread_mutex_t stats_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nj_lcore lcore;
static struct nj_lcore_log lcore_log;
static struct nj_dpdk_port device = {.name = "net_\xff", .driver = "net_ring", .node = -1};
static struct nj_port_stats port_stats = {
    .link_up = true, .rx_errors = UINT64_MAX, .tx_packets = 3};
static _Atomic nj_ns supervised_at, unpolled[1], ready_stall = NJ_SEC;
static _Atomic bool is_stopping, is_yielding;
static struct nj_mgmt_reloads reloads;
static struct nj_class_rate rates[NJ_CLASSES_MAX];
static struct nj_mgmt_view view;
static struct rig *rig;
static bool was_reset;
static json_t *answers; /* a list of all, which a test uses until its end */

static bool change_limits(void *policies, const char *change, char *why, size_t why_bytes)
{
    return nj_policies_change(policies, change, 0, why, why_bytes) > 0;
}

static void reset_handlers(void *ctx)
{
    was_reset = true;
}

/* The rig has one shard, and adopts no policy: NULL ops. */
static void start(void)
{
    char path[64], why[256];

    scratch_make();
    snprintf(path, sizeof path, "%s/policy", scratch);
    FILE *f = fopen(path, "w");
    fputs("[server]\nrate = 10MiB/s\n[class video]\npath = /video/\nstreams = 4\n", f);
    fclose(f);
    nj_server_config_init(&config);
    config.policy_file = path;
    config.addr[0] = "198.18.0.2/24";
    config.root = scratch;
    cr_assert_eq(nj_settings_from_config(&settings, &config, why, sizeof why), 0, "%s", why);
    struct nj_policies *policies = nj_policies_new(&settings, 0, why, sizeof why);
    cr_assert(policies, "%s", why);
    rig = rig_new();
    lcore.id = 5;
    device.id = 2;
    view = (struct nj_mgmt_view){
        .n_ports = 1,
        .n_shards = 1,
        .port[0] = {&device, &port_stats, 0, 1},
        .port_stats_lock = &stats_lock,
        .shard[0] = rig->s,
        .lcore = &lcore,
        .lcore_log = &lcore_log,
        .policies = policies,
        .clients = nj_clients_new(64),
        .class_rate = rates,
        .routes = nj_routes_new(NULL, 0, why, sizeof why),
        .supervised_at = &supervised_at,
        .is_stopping = &is_stopping,
        .is_yielding = &is_yielding,
        .unpolled = unpolled,
        .ready_stall = &ready_stall,
        .reloads = &reloads,
        .hooks = {policies, change_limits, reset_handlers},
    };
}

static void finish(void)
{
    scratch_remove();
    json_decref(answers);
    if (!rig)
        return;
    nj_policies_free(view.policies);
    nj_settings_free(&settings);
    nj_clients_free((struct nj_clients *)(uintptr_t)view.clients);
    nj_routes_free((struct nj_routes *)(uintptr_t)view.routes);
    rig_free(rig);
}

TestSuite(mgmt_json_document, .fini = finish);

/* Returns it. */
static json_t *keep(json_t *root)
{
    if (!answers)
        answers = json_array();
    json_array_append_new(answers, root);
    return root;
}

/* NULL: it was refused. */
static json_t *ask(const char *name, const char *params)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    bool ok = nj__mgmt_write_json(&view, name, params, out);

    fclose(out);
    json_t *root = ok ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    cr_assert_eq(ok, root != NULL, "%s?%s: %s", name, params, text);
    cr_expect(ok ? text[n - 1] == '\n' : n == 0);
    for (size_t i = 0; i + 1 < n; i++)
        cr_assert(text[i] >= 0x20 && text[i] < 0x7f);
    free(text);
    return root ? keep(root) : NULL;
}

static bool is_refused(const char *name, const char *params)
{
    return !ask(name, params);
}

static json_t *first_of(json_t *root, const char *list)
{
    return json_array_get(json_object_get(root, list), 0);
}

static json_int_t number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "%s", key);
    return json_integer_value(value);
}

static const char *text(json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    cr_assert(value, "%s", key);
    return value;
}

Test(mgmt_json_document, counters_and_shards)
{
    start();
    rig_connect(rig, 1000);
    nj_shard_publish(rig->s);
    json_t *stats = ask("stats", NULL), *shards = ask("shards", "");
    cr_expect_eq(number(stats, "connections"), 1);
    cr_expect_eq(json_object_size(stats), NJ_N_COUNTERS, "no former names");
    json_t *one = first_of(shards, "shards");
    cr_expect_eq(json_object_size(shards), 1);
    cr_expect_eq(number(one, "number"), 0);
    cr_expect_eq(number(one, "lcore"), 5);
    cr_expect_eq(number(one, "port"), 2);
    cr_expect_eq(number(one, "connections"), 1);
    cr_expect(json_is_object(json_object_get(one, "drops")));
    json_t *same = ask("shards", "shard=0");
    cr_expect(json_equal(shards, same));
    cr_expect_eq(number(first_of(ask("memory", "0"), "pools"), "used"), 1);
    cr_expect_eq(number(json_object_get(ask("latency", NULL), "ttfb"), "count"), 0);
    cr_expect_eq(number(ask("stages", NULL), "steps_measured"), 0);
    cr_expect_eq(number(ask("shaping", NULL), "wakes_empty_ppm"), 0);
}

Test(mgmt_json_document, ports_and_texts_that_are_no_utf8)
{
    start();
    json_t *one = first_of(ask("port", NULL), "ports");
    cr_expect_eq(number(one, "number"), 2);
    cr_expect_str_eq(text(one, "device"), "net_\xc3\xbf");
    cr_expect_str_eq(text(one, "link"), "up");
    cr_expect_eq(number(one, "numa_node"), -1);
    cr_expect_eq(number(one, "tx_packets"), 3);
    cr_expect(!json_object_get(one, "rx_errors"), "the device does not count them");
    cr_expect(json_equal(one, first_of(ask("port", "port=2"), "ports")));
    cr_expect(is_refused("port", "port=0"));
    one = first_of(ask("addresses", NULL), "addresses");
    cr_expect_str_eq(text(one, "address"), "198.18.0.2");
    cr_expect_eq(number(one, "prefix"), 24);
    cr_expect_str_eq(text(one, "state"), "ready");
}

Test(mgmt_json_document, classes_and_limits)
{
    start();
    json_t *classes = json_object_get(ask("classes", NULL), "classes");
    cr_expect_eq(json_array_size(classes), 2);
    cr_expect_str_eq(text(json_array_get(classes, 0), "name"), "default");
    json_t *limits = ask("limits", NULL), *list = json_object_get(limits, "classes");
    cr_expect_eq(number(limits, "version"), 1);
    cr_expect_str_eq(text(json_object_get(limits, "server"), "rate"), "10MiB/s");
    cr_expect_str_eq(text(json_array_get(list, 1), "name"), "video");
    cr_expect_str_eq(text(json_array_get(list, 1), "streams"), "4");
}

/* A GET changes nothing. */
Test(mgmt_json_document, parameters_change_nothing)
{
    start();
    cr_expect(is_refused("limits", "rate=1MiB/s"));
    cr_expect(is_refused("limits", "class=video,rate=1MiB/s"));
    cr_expect(is_refused("ewyk", "reset"));
    cr_expect(is_refused("ewyk", "route=reset"));
    cr_expect(!was_reset);
    cr_expect_eq(number(ask("limits", NULL), "version"), 1);
}

static json_t *change(const char *what, unsigned status)
{
    char *written = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&written, &n);

    cr_expect_eq(nj__mgmt_change_limits(&view, what, out), status, "%s", what);
    fclose(out);
    json_t *root = json_loads(written, 0, NULL);
    cr_assert(root, "%s", written);
    free(written);
    return keep(root);
}

Test(mgmt_json_document, a_change_of_limits)
{
    start();
    json_t *limits = change("class=video,rate=1MiB/s", 200);
    cr_expect_eq(number(limits, "version"), 2);
    cr_expect_str_eq(text(json_array_get(json_object_get(limits, "classes"), 1), "rate"), "1MiB/s");
    cr_expect(strstr(text(change("class=none_such,rate=1MiB/s", 422), "error"), "none_such"));
    cr_expect(strstr(text(change("\"\xff=3", 422), "error"), "\"\xc3\xbf"));
    cr_expect_eq(number(ask("limits", NULL), "version"), 2);
}

Test(mgmt_json_document, parameters)
{
    static const char *const good[][2] = {
        {"clients", NULL},          {"clients", ""},
        {"clients", "limit=20"},    {"clients", "20"},
        {"clients", "by=streams"},  {"clients", "limit=20&by=streams"},
        {"clients", "20,by=bytes"}, {"clients", "by=connections&limit=1000"},
        {"latency", "shard=0"},     {"latency", "0"},
        {"version", NULL},          {"abuse", NULL},
        {"refused", NULL},          {"files", NULL},
    };
    static const char *const bad[][2] = {
        {"clients", "limit=0"},
        {"clients", "limit=1001"},
        {"clients", "limit="},
        {"clients", "limit=1&limit=2"},
        {"clients", "1&2"},
        {"clients", "=1"},
        {"clients", "by=1"},
        {"clients", "by=streams&"},
        {"clients", "&"},
        {"clients", "limit=%31"},
        {"clients", "li=1"},
        {"clients", "shard=1"},
        {"latency", "shard=1"},
        {"latency", "shard=-1"},
        {"latency", "shard=x"},
        {"ewyk", "shard=0"},
        {"ewyk", "route=0"},
        {"stats", "0"},
        {"stats", "shard=0"},
        {"version", "x"},
        {"addresses", "0"},
        {"none", NULL},
        {"", NULL},
        {"../stats", NULL},
    };
    char many[4096];

    start();
    for (size_t i = 0; i < NJ_ARRAY_LEN(good); i++)
        cr_expect(!is_refused(good[i][0], good[i][1]), "%s?%s", good[i][0], good[i][1]);
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect(is_refused(bad[i][0], bad[i][1]), "%s?%s", bad[i][0], bad[i][1]);
    memset(many, '1', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    cr_expect(is_refused("clients", many));
    char names[32];
    cr_expect_str_eq(nj__mgmt_parameters_of("clients", names, sizeof names), "limit and by");
    cr_expect_str_eq(nj__mgmt_parameters_of("version", names, sizeof names), "none");
    cr_expect_null(nj__mgmt_parameters_of("stat", names, sizeof names));
}

/* Each command with its parameters, and none has a second one without the first of its kind. */
Test(mgmt_json_document, list_of_commands)
{
    char *written = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&written, &n);

    cr_assert(nj__mgmt_write_json_commands(out));
    fclose(out);
    json_t *list = json_object_get(keep(json_loads(written, 0, NULL)), "commands");
    cr_assert_eq(json_array_size(list), nj__n_commands);
    for (size_t i = 0; i < nj__n_commands; i++) {
        json_t *one = json_array_get(list, i), *params = json_object_get(one, "parameters");
        char path[64];
        snprintf(path, sizeof path, "/api/v1/%s", nj__commands[i].name);
        cr_expect_str_eq(text(one, "name"), nj__commands[i].name);
        cr_expect_str_eq(text(one, "path"), path);
        cr_expect_str_eq(text(one, "help"), nj__commands[i].help);
        if (strcmp(nj__commands[i].name, "clients") == 0) {
            cr_expect_str_eq(json_string_value(json_array_get(params, 0)), "limit");
            cr_expect_str_eq(json_string_value(json_array_get(params, 1)), "by");
        }
    }
    free(written);
}
