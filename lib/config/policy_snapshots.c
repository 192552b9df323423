/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions of the policy: reload, hours of the day, and changes by telemetry. Shards adopt
 * immutable snapshots, and a snapshot is freed when all shards have adopted a later one (as RCU
 * does). */
#include "config/policy_snapshots.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/set_error.h"
#include "config/limit_changes.h"
#include "config/settings_validate.h"
#include "config/site_places.h"

/* Lcores adopt within some steps (lib/shape/shaper.h). With too many changes pending, a caller
 * polls this often, once per millisecond, before the change is refused. */
#define ADOPT_POLLS 100

/* A configuration that was read, and the matcher of its lists. */
struct source {
    struct nj_settings *settings;
    struct nj_policy_file *file; /* of the settings */
    struct nj_acl *acl;
    struct nj_sites *sites; /* NULL: none */
    struct source *next;    /* in nj_policies.retired */
    uint32_t n_refs;        /* snapshots, and struct nj_policies */
    bool is_borrowed;       /* the settings belong to the caller */
};

struct snapshot {
    struct nj_policy policy;
    struct nj_blocked_nets blocked;
    struct source *source;
};

/* Networks that are blocked. */
struct blocks {
    uint32_t n;
    struct nj_block at[NJ_BLOCKS_MAX];
};

/* The last class in each slot. */
struct slots {
    char name[NJ_CLASSES_MAX][NJ_CLASS_NAME_MAX];
    uint32_t slot_gen[NJ_CLASSES_MAX]; /* number of classes it has had */
};

struct nj_policies {
    pthread_mutex_t lock;
    const struct nj_server_config *given; /* configuration of the command line */
    struct nj_policy_ops ops;
    struct source *source;
    struct nj_limit_changes limits; /* changed at run time */
    struct nj_limit_changes next;   /* while the lock is held: what they are to become */
    uint64_t hours;
    struct snapshot *now;
    uint32_t n_old;
    struct snapshot *old[NJ_POLICIES_OLD_MAX];
    struct slots slots;
    struct nj__site_places places;
    struct blocks blocks;
    _Atomic uint32_t n_sources;
    struct source *retired; /* without references, but requests still use their sites */
};

/* --- sources and snapshots ------------------------------------------------------------------ */

static void free_source(struct source *s)
{
    nj_acl_free(s->acl);
    nj_sites_free(s->sites);
    if (!s->is_borrowed) {
        nj_settings_free(s->settings);
        free(s->settings);
    }
    free(s);
}

static void unref_source(struct nj_policies *p, struct source *s)
{
    if (--s->n_refs > 0)
        return;
    s->next = p->retired;
    p->retired = s;
}

/* Frees the sources whose sites no request uses any more. */
static void free_retired(struct nj_policies *p)
{
    for (struct source **at = &p->retired; *at;) {
        struct source *s = *at;
        if (s->sites && nj_sites_n_held(s->sites) > 0) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free_source(s);
    }
}

/* Each source gives its rules other identities, since heads of responses are cached by them. */
static bool make_sites(struct nj_policies *p, struct source *s, char *why, size_t n)
{
    struct nj_site_sections *d = s->file->sites;
    const char *cause = "no memory";

    if (d->n_sites == 0)
        return true;
    uint64_t fields_id = (uint64_t)++p->n_sources << 32;
    if (nj__site_places_assign(&p->places, d))
        s->sites = nj_sites_new(d->sites, d->n_sites, d->paths, d->n_paths, fields_id, &cause);
    if (!s->sites)
        nj_set_error(why, n, "%s", cause);
    return s->sites != NULL;
}

/* The settings are the caller's until `is_borrowed` is reset. */
static struct source *new_source(struct nj_policies *p, struct nj_settings *settings, char *why,
                                 size_t n)
{
    struct source *s = calloc(1, sizeof *s);
    struct nj_policy_file *file = settings->policy;

    if (!s) {
        nj_set_error(why, n, "no memory for a policy");
        return NULL;
    }
    *s = (struct source){.settings = settings, .file = file, .n_refs = 1, .is_borrowed = true};
    if (make_sites(p, s, why, n) &&
        (!file->list_used || (s->acl = nj_acl_new(file->network, file->n_networks, why, n))))
        return s;
    free_source(s);
    return NULL;
}

static void free_snapshot(struct nj_policies *p, struct snapshot *s)
{
    unref_source(p, s->source);
    free(s);
}

static uint8_t find_slot(const struct slots *s, const char *name)
{
    for (uint8_t k = 1; k < NJ_CLASSES_MAX; k++)
        if (strcmp(s->name[k], name) == 0)
            return k;
    return 0;
}

/* A slot for a new class: one that was never used, or one without open responses whose class no
 * longer exists, since the counters of a slot belong to one class. 0: none. */
static uint8_t find_free_slot(const struct nj_policies *p, const struct slots *s, uint32_t taken)
{
    uint8_t unused = find_slot(s, "");

    for (uint8_t k = 1; k < NJ_CLASSES_MAX && unused == 0; k++)
        if (!(taken >> k & 1) && !p->ops.has_responses(p->ops.ctx, k))
            unused = k;
    return unused;
}

/* Classes keep their slots by name; slot 0 is the default class. Returns the first class without a
 * free slot, or NULL. */
static const struct nj_class_def *assign_slots(const struct nj_policies *p,
                                               struct nj_policy_file *f, struct slots *s)
{
    uint32_t taken = 1;

    for (uint32_t i = 1; i < f->n_classes; i++) {
        f->class_at[i].slot = find_slot(s, f->class_at[i].name);
        taken |= 1u << f->class_at[i].slot;
    }
    for (uint32_t i = 1; i < f->n_classes; i++) {
        struct nj_class_def *c = &f->class_at[i];
        if (c->slot != 0)
            continue;
        c->slot = find_free_slot(p, s, taken);
        if (c->slot == 0)
            return c;
        taken |= 1u << c->slot;
        snprintf(s->name[c->slot], NJ_CLASS_NAME_MAX, "%s", c->name);
        s->slot_gen[c->slot]++;
    }
    for (uint32_t i = 1; i < f->n_classes; i++)
        f->class_at[i].slot_gen = s->slot_gen[f->class_at[i].slot];
    return NULL;
}

static struct snapshot *make_snapshot(struct nj_policies *p, struct source *source,
                                      const struct nj_limit_changes *limits, uint64_t hours)
{
    struct snapshot *s = calloc(1, sizeof *s);
    struct nj_policy_changes changes;

    if (!s)
        return NULL;
    nj_limit_changes_merge(limits, source->file, &changes);
    nj_policy_compile(source->file, p->given, &changes, hours, &s->policy);
    s->policy.sites = source->sites;
    s->policy.http = &source->settings->http;
    s->policy.version = p->now ? p->now->policy.version + 1 : 1;
    if (source->acl) {
        s->policy.lists = nj_acl_lookup;
        s->policy.lists_ctx = source->acl;
    }
    for (uint32_t i = 0; i < p->blocks.n; i++)
        nj_blocked_nets_add(&s->blocked, &p->blocks.at[i].net);
    if (s->blocked.n > 0)
        s->policy.blocked = &s->blocked;
    s->source = source;
    source->n_refs++;
    return s;
}

/* Free snapshots that no shard uses any more. */
static void free_adopted(struct nj_policies *p)
{
    uint64_t adopted = p->n_old > 0 && p->ops.adopted ? p->ops.adopted(p->ops.ctx) : 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < p->n_old; i++) {
        if (p->old[i]->policy.version < adopted)
            free_snapshot(p, p->old[i]);
        else
            p->old[kept++] = p->old[i];
    }
    p->n_old = kept;
    free_retired(p);
}

/* Wait until one more snapshot can be replaced. Releases the lock while it waits. */
static bool wait_until_replaceable(struct nj_policies *p)
{
    const struct timespec ms = {.tv_nsec = (long)NJ_MS};

    free_adopted(p);
    for (uint32_t i = 0; i < ADOPT_POLLS && p->n_old == NJ_POLICIES_OLD_MAX; i++) {
        pthread_mutex_unlock(&p->lock);
        nanosleep(&ms, NULL);
        pthread_mutex_lock(&p->lock);
        free_adopted(p);
    }
    return p->n_old < NJ_POLICIES_OLD_MAX;
}

/* Makes a snapshot and puts it in force. Returns its version, or 0 with the reason. */
static uint64_t publish(struct nj_policies *p, struct source *source,
                        const struct nj_limit_changes *limits, uint64_t hours, char *why, size_t n)
{
    struct snapshot *s = make_snapshot(p, source, limits, hours);

    if (!s) {
        nj_set_error(why, n, "no memory for a policy");
        return 0;
    }
    if (p->ops.set)
        p->ops.set(p->ops.ctx, &s->policy);
    p->old[p->n_old++] = p->now;
    p->now = s;
    p->hours = hours;
    return s->policy.version;
}

/* --- create and free ------------------------------------------------------------------------ */

struct nj_policies *nj_policies_new(struct nj_settings *first, uint32_t minute, char *why, size_t n)
{
    struct nj_policies *p = calloc(1, sizeof *p);

    if (!p) {
        nj_set_error(why, n, "no memory for a policy");
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    p->given = first->given;
    NJ_CHECK(!assign_slots(p, first->policy, &p->slots)); /* as many slots as classes */
    p->hours = nj_policy_active_hours_mask(first->policy, minute);
    p->source = new_source(p, first, why, n);
    p->now = p->source ? make_snapshot(p, p->source, &p->limits, p->hours) : NULL;
    if (p->now)
        return p;
    if (p->source)
        nj_set_error(why, n, "no memory for a policy");
    nj_policies_free(p);
    return NULL;
}

void nj_policies_free(struct nj_policies *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_old; i++)
        free_snapshot(p, p->old[i]);
    if (p->now)
        free_snapshot(p, p->now);
    if (p->source)
        unref_source(p, p->source);
    for (struct source *s = p->retired, *next; s; s = next) {
        next = s->next;
        free_source(s);
    }
    nj__site_places_free(&p->places);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

const struct nj_policy *nj_policies_initial(const struct nj_policies *p)
{
    return &p->now->policy;
}

void nj_policies_set_ops(struct nj_policies *p, const struct nj_policy_ops *ops)
{
    pthread_mutex_lock(&p->lock);
    p->ops = *ops;
    pthread_mutex_unlock(&p->lock);
}

/* --- reload --------------------------------------------------------------------------------- */

/* Puts a source in force, whose file has the settings that are to be those of the server. */
static uint64_t install(struct nj_policies *p, struct source *source, uint32_t minute,
                        struct nj_diags *faults)
{
    const char *path = p->given->policy_file;
    char why[256];

    if (!wait_until_replaceable(p)) {
        nj_diag_add(faults, path, 0, "an lcore has not applied the last changes yet; try again");
        return 0;
    }
    struct slots slots = p->slots;
    const struct nj_class_def *unplaced = assign_slots(p, source->file, &slots);
    if (unplaced) {
        nj_diag_at(faults, unplaced->at,
                   "class %s: no free slot: classes that this file removes still have open "
                   "responses; try again when they have ended, or first load a file with neither",
                   unplaced->name);
        return 0;
    }
    p->next = p->limits;
    nj_limit_changes_keep(&p->next, p->source->file, source->file);
    uint64_t hours = nj_policy_active_hours_mask(source->file, minute);
    uint64_t version = publish(p, source, &p->next, hours, why, sizeof why);
    if (version == 0) {
        nj_diag_add(faults, path, 0, "%s", why);
        return 0;
    }
    source->is_borrowed = false;
    unref_source(p, p->source);
    p->source = source;
    p->slots = slots;
    p->limits = p->next;
    return version;
}

const struct nj_settings *nj_policies_settings(const struct nj_policies *p)
{
    return p->source->settings;
}

/* Lists and sites are built before the lock is taken: that can take a second. */
uint64_t nj_policies_install(struct nj_policies *p, struct nj_settings *next, uint32_t minute,
                             struct nj_diags *faults)
{
    char why[256];
    struct source *source = new_source(p, next, why, sizeof why);

    if (!source) {
        nj_diag_add(faults, p->given->policy_file, 0, "%s", why);
        return 0;
    }
    pthread_mutex_lock(&p->lock);
    uint64_t version = install(p, source, minute, faults);
    pthread_mutex_unlock(&p->lock);
    if (version == 0)
        free_source(source);
    return version;
}

/* --- hours ---------------------------------------------------------------------------------- */

uint32_t nj_minute_of_day(time_t now)
{
    struct tm tm;

    return localtime_r(&now, &tm) ? (uint32_t)(tm.tm_hour * 60 + tm.tm_min) : 0;
}

bool nj_policies_have_hours(struct nj_policies *p)
{
    pthread_mutex_lock(&p->lock);
    bool has = nj_policy_file_has_hours(p->source->file);
    pthread_mutex_unlock(&p->lock);
    return has;
}

uint64_t nj_policies_apply_hours(struct nj_policies *p, uint32_t minute)
{
    uint64_t version = 0;
    char why[64];

    pthread_mutex_lock(&p->lock);
    free_adopted(p);
    uint64_t hours = nj_policy_active_hours_mask(p->source->file, minute);
    if (hours != p->hours && p->n_old < NJ_POLICIES_OLD_MAX)
        version = publish(p, p->source, &p->limits, hours, why, sizeof why);
    pthread_mutex_unlock(&p->lock);
    return version;
}

/* --- changes of limits ------------------------------------------------------------------------ */

/* Puts p->next in force. */
static uint64_t set_limits(struct nj_policies *p, char *why, size_t n)
{
    uint64_t version = publish(p, p->source, &p->next, p->hours, why, n);
    if (version > 0)
        p->limits = p->next;
    return version;
}

static uint64_t change(struct nj_policies *p, const char *params, nj_ns now, char *why, size_t n)
{
    if (!wait_until_replaceable(p)) {
        nj_set_error(why, n, "an lcore has not applied the last changes yet; try again");
        return 0;
    }
    const struct nj_policy *before = &p->now->policy; /* not freed while it is in p->old */
    struct nj_limit_change added;
    p->next = p->limits;
    if (!nj_limit_changes_add(&p->next, p->source->file, params, now, &added, why, n))
        return 0;
    uint64_t version = set_limits(p, why, n);
    if (version > 0)
        nj_limit_change_describe(&added, before, &p->now->policy, now, why, n);
    return version;
}

uint64_t nj_policies_change(struct nj_policies *p, const char *params, nj_ns now, char *why,
                            size_t n)
{
    pthread_mutex_lock(&p->lock);
    uint64_t version = change(p, params, now, why, n);
    pthread_mutex_unlock(&p->lock);
    return version;
}

/* Without a free place for a snapshot they end in a later tick. */
uint32_t nj_policies_end_limits(struct nj_policies *p, nj_ns now)
{
    uint32_t n = 0;
    char why[64];

    pthread_mutex_lock(&p->lock);
    if (nj_limit_changes_are_due(&p->limits, now)) {
        p->next = p->limits;
        n = nj_limit_changes_end(&p->next, now);
        free_adopted(p);
        if (n > 0 && (p->n_old == NJ_POLICIES_OLD_MAX || set_limits(p, why, sizeof why) == 0))
            n = 0;
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

void nj_policies_call_with_current(struct nj_policies *p,
                                   void (*see)(void *ctx, const struct nj_policy *policy),
                                   void *ctx)
{
    pthread_mutex_lock(&p->lock);
    see(ctx, &p->now->policy);
    pthread_mutex_unlock(&p->lock);
}

void nj_policies_call_with_sites(struct nj_policies *p,
                                 void (*see)(void *ctx, const struct nj_site_def *sites,
                                             uint32_t n),
                                 void *ctx)
{
    pthread_mutex_lock(&p->lock);
    const struct nj_site_sections *of = p->source->file->sites;
    see(ctx, of->sites, of->n_sites);
    pthread_mutex_unlock(&p->lock);
}

/* The limits as they would be without that change. */
static void set_follower(struct nj_policies *p, uint32_t i, struct nj_policy *compiled,
                         struct nj_limit_shown *out)
{
    struct nj_policy_changes changes;
    struct nj_class server;

    p->next = p->limits;
    nj_limit_changes_end_one(&p->next, i);
    nj_limit_changes_merge(&p->next, p->source->file, &changes);
    nj_policy_compile(p->source->file, p->given, &changes, p->hours, compiled);
    const struct nj_class *c = nj_limits_of(compiled, out->change.of, &server);
    out->has_follower = c != NULL;
    if (c)
        out->follower = *c;
}

uint32_t nj_policies_limits(struct nj_policies *p, struct nj_limit_shown **out)
{
    struct nj_policy *compiled = malloc(sizeof *compiled);
    struct nj_limit_shown *shown = calloc(NJ_LIMIT_CHANGES_MAX, sizeof *shown);
    uint32_t n = 0;

    if (compiled && shown) {
        pthread_mutex_lock(&p->lock);
        for (; n < p->limits.n; n++) {
            shown[n].change = p->limits.at[n];
            shown[n].file_hash = nj_limit_change_file_hash(&p->limits.at[n], p->source->file);
            if (shown[n].change.until != NJ_NEVER)
                set_follower(p, n, compiled, &shown[n]);
        }
        pthread_mutex_unlock(&p->lock);
        *out = shown;
        shown = NULL;
    } else {
        *out = NULL;
    }
    free(shown);
    free(compiled);
    return n;
}

/* --- what another process has handed over ----------------------------------------------------- */

static bool restore(struct nj_policies *p, const struct nj_run_time_changes *changes, char *why,
                    size_t n)
{
    struct blocks before = p->blocks;

    p->next = changes->limits;
    p->blocks.n = changes->n_blocks;
    memcpy(p->blocks.at, changes->block, changes->n_blocks * sizeof changes->block[0]);
    if (set_limits(p, why, n) != 0)
        return true;
    p->blocks = before;
    return false;
}

bool nj_policies_restore(struct nj_policies *p,
                         void (*fill)(void *ctx, const struct nj_policy_file *f,
                                      struct nj_run_time_changes *out),
                         void *ctx, char *why, size_t n)
{
    struct nj_run_time_changes *changes = calloc(1, sizeof *changes);

    if (!changes)
        return nj_set_error(why, n, "no memory") == 0;
    pthread_mutex_lock(&p->lock);
    bool ok = wait_until_replaceable(p);
    if (ok) {
        fill(ctx, p->source->file, changes);
        ok = restore(p, changes, why, n);
    } else {
        nj_set_error(why, n, "an lcore has not applied the last changes yet");
    }
    pthread_mutex_unlock(&p->lock);
    free(changes);
    return ok;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static struct nj_block *find_block(struct blocks *b, const struct nj_net *net)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (nj_net_eq(&b->at[i].net, net))
            return &b->at[i];
    return NULL;
}

static void remove_block(struct blocks *b, struct nj_block *which)
{
    memmove(which, which + 1, (size_t)(&b->at[--b->n] - which) * sizeof *which);
}

/* Before the blocks are read that are to change: releases the lock while it waits. */
static bool may_change_blocks(struct nj_policies *p, char *why, size_t n)
{
    return wait_until_replaceable(p) ||
           nj_set_error(why, n, "an lcore has not applied the last changes yet; try again") == 0;
}

/* Puts other blocks in force. */
static bool set_blocks(struct nj_policies *p, const struct blocks *next, char *why, size_t n)
{
    struct blocks before = p->blocks;

    p->blocks = *next;
    if (publish(p, p->source, &p->limits, p->hours, why, n) != 0)
        return true;
    p->blocks = before;
    return false;
}

static bool block(struct nj_policies *p, const struct nj_block *which, char *why, size_t n)
{
    if (!may_change_blocks(p, why, n))
        return false;
    struct blocks next = p->blocks;
    struct nj_block *known = find_block(&p->blocks, &which->net);
    if (known) {
        known->until = which->until;
        return true;
    }
    if (next.n == NJ_BLOCKS_MAX)
        return nj_set_error(why, n, "%u networks are blocked, which is the most", NJ_BLOCKS_MAX) ==
               0;
    next.at[next.n++] = *which;
    return set_blocks(p, &next, why, n);
}

bool nj_policies_block(struct nj_policies *p, const struct nj_block *which, char *why, size_t n)
{
    pthread_mutex_lock(&p->lock);
    bool ok = block(p, which, why, n);
    pthread_mutex_unlock(&p->lock);
    return ok;
}

static bool unblock(struct nj_policies *p, const struct nj_net *net, char *why, size_t n)
{
    if (!may_change_blocks(p, why, n))
        return false;
    struct blocks next = p->blocks;
    struct nj_block *known = find_block(&next, net);
    if (!known)
        return nj_set_error(why, n,
                            "this network is not blocked: the list of blocks has those that are") ==
               0;
    remove_block(&next, known);
    return set_blocks(p, &next, why, n);
}

bool nj_policies_unblock(struct nj_policies *p, const struct nj_net *net, char *why, size_t n)
{
    pthread_mutex_lock(&p->lock);
    bool ok = unblock(p, net, why, n);
    pthread_mutex_unlock(&p->lock);
    return ok;
}

/* The blocks without those whose end has come. */
static void keep_unended(struct blocks *b, nj_ns now)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->n; i++)
        if (b->at[i].until > now)
            b->at[kept++] = b->at[i];
    b->n = kept;
}

/* Without a free place for a snapshot the blocks end in a later tick. */
uint32_t nj_policies_end_blocks(struct nj_policies *p, nj_ns now)
{
    uint32_t n = 0;
    char why[128];

    pthread_mutex_lock(&p->lock);
    if (p->blocks.n > 0) {
        struct blocks next = p->blocks;
        keep_unended(&next, now);
        free_adopted(p);
        if (next.n < p->blocks.n && p->n_old < NJ_POLICIES_OLD_MAX) {
            n = p->blocks.n - next.n;
            n = set_blocks(p, &next, why, sizeof why) ? n : 0;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

uint32_t nj_policies_blocks(struct nj_policies *p, struct nj_block out[NJ_BLOCKS_MAX])
{
    pthread_mutex_lock(&p->lock);
    uint32_t n = p->blocks.n;
    memcpy(out, p->blocks.at, n * sizeof out[0]);
    pthread_mutex_unlock(&p->lock);
    return n;
}
