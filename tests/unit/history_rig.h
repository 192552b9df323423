/* SPDX-License-Identifier: BSD-3-Clause */
/* A file and its precompressed siblings in a real folder, with random changes, in virtual time.
 * fstat(2) gets virtual inodes and times, as a file system with a tick writes them, so that equal
 * seeds have equal histories. Changes also happen between the system calls of the store. */
#pragma once

#include "base/compiler.h"
#include "base/prng.h"
#include "stuck_rig.h"

#define CONTENTS     128u
#define INODES       64u
#define NS_PER_S     INT64_C(1000000000)
#define EPOCH_S      INT64_C(1900000000) /* history.now is 0 */
#define LARGE_BYTES  (NJ_OBJECT_IN_MEMORY_MAX + 8192ull)
#define LARGE_SKIP   (8ull * MIB) /* a large file has bytes here and at its start; else zeros */
#define LARGE_FILLED 8192u

enum name { FILE_F, FILE_BR, FILE_ZST, FILE_GZ, FILE_ASIDE, N_NAMES };
static const char *const suffix[N_NAMES] = {"", ".br", ".zst", ".gz", ".aside"};

/* Contents of the file, or of a sibling. Truncated contents have the words of the whole ones. */
struct content {
    uint32_t words;
    uint64_t n_bytes;
    uint32_t plain; /* of a sibling: the contents it was made from; else its own number */
    bool is_sibling;
};

struct inode {
    ino_t real;
    uint64_t number;
    int64_t mtime_ns, ctime_ns;
};

/* The contents of the file from a time on; CONTENTS: none. */
struct era {
    int64_t since_ns;
    uint32_t content;
};

static struct history {
    const char *root;
    nj_ns now; /* the shards' clock */
    struct nj_prng prng;
    uint64_t seed;
    int64_t clock_ns, tick_ns, tick_phase_ns;
    bool is_large, in_change, may_interrupt;
    struct inode inode[INODES];
    uint32_t n_inodes;
    uint64_t next_number;
    struct content content[CONTENTS];
    uint32_t n_contents, n_words;
    uint32_t now_in[N_NAMES]; /* CONTENTS: no such file */
    struct era era[4 * CONTENTS];
    uint32_t n_eras;
} history;

static inline uint32_t below(uint32_t n)
{
    return nj_prng_below(&history.prng, n);
}

/* --- time and inodes -------------------------------------------------------------------------- */

static inline void set_clock(int64_t ns)
{
    struct history *h = &history;

    h->clock_ns = ns;
    h->now = (nj_ns)(ns - EPOCH_S * NS_PER_S);
    atomic_store(&wall_ns, ns);
}

static inline void pass_time(int64_t ns)
{
    set_clock(history.clock_ns + ns);
}

/* The time that the file system writes now. */
static inline int64_t stamp(void)
{
    const struct history *h = &history;

    return h->clock_ns - (h->clock_ns - h->tick_phase_ns) % h->tick_ns;
}

static inline struct inode *find_inode(ino_t real)
{
    struct history *h = &history;

    for (uint32_t i = 0; i < h->n_inodes; i++)
        if (h->inode[i].real == real)
            return &h->inode[i];
    return NULL;
}

static inline void tell_virtual(struct stat *st)
{
    const struct inode *i = S_ISREG(st->st_mode) ? find_inode(st->st_ino) : NULL;

    if (!i)
        return;
    st->st_ino = i->number;
    st->st_mtim = (struct timespec){i->mtime_ns / NS_PER_S, i->mtime_ns % NS_PER_S};
    st->st_ctim = (struct timespec){i->ctime_ns / NS_PER_S, i->ctime_ns % NS_PER_S};
}

static int64_t longest_sleep_ns; /* of all histories */

static inline void sleep_virtually(const struct timespec *wait)
{
    int64_t ns = wait->tv_sec * NS_PER_S + wait->tv_nsec;

    if (ns > longest_sleep_ns)
        longest_sleep_ns = ns;
    pass_time(ns);
}

/* --- files ------------------------------------------------------------------------------------ */

static inline const char *path_of(enum name name)
{
    static char path[N_NAMES][PATH_MAX];

    snprintf(path[name], sizeof path[name], "%s/f%lu%s", history.root, (unsigned long)history.seed,
             suffix[name]);
    return path[name];
}

static inline struct inode *inode_of(enum name name)
{
    struct stat st;

    cr_assert_eq(lstat(path_of(name), &st), 0);
    struct inode *i = find_inode(st.st_ino);
    cr_assert(i);
    return i;
}

/* A number that no name has: as on ext4, often the last one that became free. A large file that is
 * still open keeps its number. */
static inline uint64_t free_number(void)
{
    struct history *h = &history;

    if (h->is_large || below(2) == 0)
        return h->next_number++;
    for (uint64_t n = 100;; n++) {
        bool is_taken = false;
        for (uint32_t i = 0; i < N_NAMES; i++)
            is_taken |= h->now_in[i] != CONTENTS && inode_of(i)->number == n;
        if (!is_taken)
            return n;
    }
}

/* Also few bytes differ between contents. */
static inline uint64_t word_at(uint32_t words, uint64_t at)
{
    struct nj_prng prng;

    nj_prng_init(&prng, (uint64_t)words << 32 | (at & UINT32_MAX));
    return nj_prng_next(&prng);
}

static inline void fill(int fd, const struct content *c)
{
    uint64_t words[LARGE_FILLED / 8];

    for (uint64_t from = 0; from < c->n_bytes; from += LARGE_SKIP) {
        for (uint32_t i = 0; i < NJ_ARRAY_LEN(words); i++)
            words[i] = word_at(c->words, from + 8 * i);
        uint64_t n = c->n_bytes - from < sizeof words ? c->n_bytes - from : sizeof words;
        cr_assert_eq(pwrite(fd, words, n, (off_t)from), (ssize_t)n);
    }
    cr_assert_eq(ftruncate(fd, (off_t)c->n_bytes), 0);
}

static inline uint32_t add_content(uint32_t words, uint64_t n_bytes)
{
    struct history *h = &history;

    for (uint32_t i = 0; i < h->n_contents; i++)
        if (h->content[i].words == words && h->content[i].n_bytes == n_bytes)
            return i;
    cr_assert_lt(h->n_contents, CONTENTS);
    h->content[h->n_contents] = (struct content){words, n_bytes, h->n_contents, false};
    return h->n_contents++;
}

static inline void begin_era(void)
{
    struct history *h = &history;

    cr_assert_lt(h->n_eras, NJ_ARRAY_LEN(h->era));
    h->era[h->n_eras++] = (struct era){h->clock_ns, h->now_in[FILE_F]};
}

static inline uint64_t some_size(void)
{
    struct history *h = &history;

    if (h->now_in[FILE_F] != CONTENTS && below(4) > 0)
        return h->content[h->now_in[FILE_F]].n_bytes;
    return h->is_large ? LARGE_BYTES + 8 * below(100) : 8 + below(LARGE_FILLED - 8);
}

/* A new file with these contents, renamed to `name`. */
static inline void create(enum name name, uint32_t content, int64_t mtime_ns)
{
    struct history *h = &history;
    char other[PATH_MAX];
    struct stat st;

    snprintf(other, sizeof other, "%s/new", h->root);
    int fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
    cr_assert_geq(fd, 0);
    fill(fd, &h->content[content]);
    cr_assert_eq(next.fstat(fd, &st), 0);
    close(fd);
    uint64_t number = free_number(); /* while the old one has its name */
    if (h->now_in[name] != CONTENTS)
        inode_of(name)->ctime_ns = stamp();
    struct inode *i = find_inode(st.st_ino);
    if (!i) {
        cr_assert_lt(h->n_inodes, INODES);
        i = &h->inode[h->n_inodes++];
    }
    *i = (struct inode){st.st_ino, number, mtime_ns, stamp()};
    cr_assert_eq(rename(other, path_of(name)), 0);
    h->now_in[name] = content;
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Often that of the file as it is. */
static inline int64_t some_mtime(void)
{
    struct history *h = &history;
    int64_t old = h->now_in[FILE_F] == CONTENTS ? stamp() : inode_of(FILE_F)->mtime_ns;

    switch (below(12)) {
    case 0:
        return 0;
    case 1:
        return NS_PER_S;
    case 2:
        return -5 * NS_PER_S;
    case 3:
        return h->clock_ns + below(5) * NS_PER_S;
    case 4:
        return h->clock_ns - below(5) * NS_PER_S;
    case 5:
    case 6:
    case 7:
        return old;
    default:
        return stamp();
    }
}

/* Of an open large file, a rewrite is not noticed whose mtime is set back, if its permissions or
 * links also change before the next fstat(2); see verified_read.c. */
static inline bool may_set_back(void)
{
    return !history.is_large;
}

static inline void overwrite(uint32_t content)
{
    int fd = open(path_of(FILE_F), O_RDWR);

    cr_assert_geq(fd, 0);
    fill(fd, &history.content[content]);
    close(fd);
    history.now_in[FILE_F] = content;
    struct inode *i = inode_of(FILE_F);
    if (below(2) || !may_set_back())
        i->mtime_ns = stamp();
    i->ctime_ns = stamp();
}

static inline void truncate_file(void)
{
    struct history *h = &history;
    const struct content *c = &h->content[h->now_in[FILE_F]];
    uint64_t n_bytes = h->is_large ? c->n_bytes - 8 : c->n_bytes - c->n_bytes / 4;

    if (h->is_large && n_bytes <= NJ_OBJECT_IN_MEMORY_MAX)
        return;
    overwrite(add_content(c->words, n_bytes));
}

static inline void move(enum name from, enum name to)
{
    struct history *h = &history;

    if (h->now_in[to] != CONTENTS)
        inode_of(to)->ctime_ns = stamp();
    inode_of(from)->ctime_ns = stamp();
    char old[PATH_MAX];
    strcpy(old, path_of(from));
    cr_assert_eq(rename(old, path_of(to)), 0);
    h->now_in[to] = h->now_in[from];
    h->now_in[from] = CONTENTS;
}

/* As a compressor does, from the file as it is. What is changed in the same tick can't be told from
 * what was changed before, so the next change comes later. */
static inline void make_sibling(void)
{
    struct history *h = &history;
    int64_t mtime_ns = inode_of(FILE_F)->mtime_ns;
    uint32_t content = add_content(++h->n_words, 8 + below(LARGE_FILLED - 8));

    h->content[content].plain = h->now_in[FILE_F];
    h->content[content].is_sibling = true;
    switch (below(4)) {
    case 0:
        mtime_ns = stamp();
        break;
    case 1:
        mtime_ns -= (mtime_ns % NS_PER_S + NS_PER_S) % NS_PER_S;
        break;
    default:
        break;
    }
    create(FILE_BR + below(3), content, mtime_ns);
    pass_time(h->tick_ns);
}

static inline void change_absent(void)
{
    struct history *h = &history;

    if (h->now_in[FILE_ASIDE] != CONTENTS && below(2))
        move(FILE_ASIDE, FILE_F);
    else
        create(FILE_F, add_content(++h->n_words, some_size()), some_mtime());
}

static inline void change_file(void)
{
    struct history *h = &history;
    enum name sibling = FILE_BR + below(3);
    bool may_wait = h->tick_ns < NS_PER_S || !h->may_interrupt;

    switch (below(16)) {
    case 0:
    case 1:
    case 2:
        overwrite(add_content(++h->n_words, some_size()));
        return;
    case 3:
        truncate_file();
        return;
    case 4:
        inode_of(FILE_F)->mtime_ns = may_set_back() ? some_mtime() : stamp();
        inode_of(FILE_F)->ctime_ns = stamp();
        return;
    case 5:
        cr_assert_eq(chmod(path_of(FILE_F), below(2) ? 0644 : 0640), 0);
        inode_of(FILE_F)->ctime_ns = stamp();
        return;
    case 6:
        move(FILE_F, FILE_ASIDE);
        return;
    case 7:
        if (h->now_in[FILE_ASIDE] != CONTENTS)
            move(FILE_ASIDE, FILE_F);
        return;
    case 8:
    case 9:
    case 10:
        if (may_wait)
            make_sibling();
        return;
    case 11:
        if (h->now_in[sibling] != CONTENTS)
            cr_assert_eq(unlink(path_of(sibling)), 0);
        h->now_in[sibling] = CONTENTS;
        return;
    default:
        create(FILE_F, add_content(++h->n_words, some_size()), some_mtime());
        begin_era();
        if (may_wait && below(2)) /* a build writes both */
            make_sibling();
        return;
    }
}

static inline void change(void)
{
    struct history *h = &history;

    if (h->n_contents + 2 > CONTENTS || h->n_inodes + 2 > INODES || h->in_change)
        return;
    h->in_change = true;
    if (h->now_in[FILE_F] == CONTENTS)
        change_absent();
    else
        change_file();
    begin_era();
    h->in_change = false;
}

/* Also while the store opens or reads the file. */
static inline void interrupt(const char *call)
{
    struct history *h = &history;

    if (h->in_change || !h->may_interrupt || (strcmp(call, "pread") && strcmp(call, "fstat")))
        return;
    if (below(12) == 0)
        pass_time(below(3) * 1000000);
    if (below(12) == 0)
        change();
}

static inline void begin_history(const char *root, uint64_t seed, int64_t clock_ns)
{
    static const int64_t ticks_ns[] = {1, 1000000, 4000000, 10000000, NS_PER_S, 2 * NS_PER_S};
    struct history *h = &history;

    memset(h, 0, sizeof *h);
    h->root = root;
    h->seed = seed;
    nj_prng_init(&h->prng, seed);
    set_clock(clock_ns + below(1000000000));
    h->tick_ns = ticks_ns[below(NJ_ARRAY_LEN(ticks_ns))];
    h->tick_phase_ns = h->tick_ns > 1 && h->tick_ns < NS_PER_S ? 1 + below(999999) : 0;
    h->is_large = below(16) == 0;
    h->next_number = 1000;
    for (uint32_t i = 0; i < N_NAMES; i++)
        h->now_in[i] = CONTENTS;
    pread_max = h->is_large || below(2) ? 0 : 100 + below(4000);
    on_stat = tell_virtual;
    on_sleep = sleep_virtually;
    on_call = interrupt;
    change();
}

static inline void end_history(void)
{
    on_call = NULL;
    for (uint32_t i = 0; i < N_NAMES; i++)
        if (history.now_in[i] != CONTENTS)
            cr_assert_eq(unlink(path_of(i)), 0);
}
