/* SPDX-License-Identifier: BSD-3-Clause */
/* How names become files: the root, each policy for symbolic links, and which users may replace
 * files. */
#include "store_rig.h"

#include "store/file_root.h"

TestSuite(store_file_root, .fini = scratch_remove);

Test(store_file_root, links_beneath)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a.txt", "inside", 6);
    write_file(&b, "../secret", "outside", 7);
    cr_assert_eq(mkdir(at(&b, "d"), 0755), 0);
    cr_assert_eq(symlink("a.txt", at(&b, "in")), 0);
    cr_assert_eq(symlink("../a.txt", at(&b, "d/up")), 0);
    cr_assert_eq(symlink("../secret", at(&b, "out")), 0);
    cr_assert_eq(symlink("/etc/passwd", at(&b, "abs")), 0);
    cr_assert_eq(symlink("..", at(&b, "parent")), 0);
    cr_assert_eq(symlink("/proc/self/cwd", at(&b, "magic")), 0);
    cr_assert_eq(symlink("loop", at(&b, "loop")), 0);

    expect_text(&b, "in", "inside");
    expect_text(&b, "d/up", "inside");
    cr_expect_eq(peek(&b, "out"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "abs"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "parent/secret"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "magic/x"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "loop"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "../secret"), NJ_FILE_ABSENT, "even if the site let it through");
    end(&b);
}

static void make_links(struct bench *b)
{
    write_file(b, "a.txt", "inside", 6);
    cr_assert_eq(mkdir(at(b, "d"), 0755), 0);
    write_file(b, "d/b.txt", "deep", 4);
    cr_assert_eq(symlink("a.txt", at(b, "in")), 0);
    cr_assert_eq(symlink("d", at(b, "folder")), 0);
    cr_assert_eq(symlink("../a.txt", at(b, "d/up")), 0);
    cr_assert_eq(symlink("folder/up", at(b, "chain")), 0);
}

/* The target of a link is relative, also if an absolute one lies below the root. */
Test(store_file_root, absolute_links)
{
    static const enum nj_symlinks rules[] = {NJ_SYMLINKS_NONE, NJ_SYMLINKS_OWNER,
                                             NJ_SYMLINKS_BENEATH};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct bench b;
        begin_with(&b, MIB, rules[i]);
        make_links(&b);
        char target[PATH_MAX];
        strcpy(target, at(&b, "a.txt"));
        cr_assert_eq(symlink(target, at(&b, "file")), 0);
        strcpy(target, b.root);
        cr_assert_eq(symlink(target, at(&b, "root-of-all")), 0);
        cr_assert_eq(symlink("/a.txt", at(&b, "of-root")), 0);
        cr_expect_eq(peek(&b, "file"), NJ_FILE_ABSENT);
        cr_expect_eq(peek(&b, "root-of-all/a.txt"), NJ_FILE_ABSENT);
        cr_expect_eq(peek(&b, "of-root"), NJ_FILE_ABSENT);
        end(&b);
    }
}

Test(store_file_root, no_links)
{
    struct bench b;
    begin_with(&b, MIB, NJ_SYMLINKS_NONE);
    make_links(&b);
    expect_text(&b, "a.txt", "inside");
    expect_text(&b, "d/b.txt", "deep");
    cr_expect_eq(peek(&b, "in"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "folder/b.txt"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "chain"), NJ_FILE_ABSENT);
    end(&b);
}

static void give(struct bench *b, const char *name, uid_t uid)
{
    cr_assert_eq(lchown(at(b, name), uid, (gid_t)-1), 0);
}

Test(store_file_root, links_of_the_owner)
{
    struct bench b;
    begin_with(&b, MIB, NJ_SYMLINKS_OWNER);
    make_links(&b);
    write_file(&b, "../secret", "outside", 7);
    cr_assert_eq(symlink("../secret", at(&b, "out")), 0);
    cr_assert_eq(symlink("d/../../secret", at(&b, "d/out")), 0);
    cr_assert_eq(symlink("/etc/passwd", at(&b, "abs")), 0);
    cr_assert_eq(symlink("loop", at(&b, "loop")), 0);
    cr_assert_eq(symlink(".", at(&b, "self")), 0);
    cr_assert_eq(symlink("none", at(&b, "dangling")), 0);
    cr_assert_eq(symlink("d/./..//d/b.txt", at(&b, "winding")), 0);

    expect_text(&b, "a.txt", "inside");
    expect_text(&b, "in", "inside");
    expect_text(&b, "folder/b.txt", "deep");
    expect_text(&b, "folder/up", "inside");
    expect_text(&b, "chain", "inside");
    expect_text(&b, "self/self/a.txt", "inside");
    expect_text(&b, "winding", "deep");
    cr_expect_eq(peek(&b, "folder"), NJ_FILE_IS_DIR);
    cr_expect_eq(peek(&b, "self"), NJ_FILE_IS_DIR);
    cr_expect_eq(peek(&b, "folder/none"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "out"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "d/out"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "abs"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "loop"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "dangling"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "a.txt/x"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "in/x"), NJ_FILE_ABSENT);
    end(&b);
}

/* A user who may write below the root cannot publish files of other users. */
Test(store_file_root, links_of_others)
{
    struct bench b;
    if (geteuid() != 0)
        cr_skip("only root can change the owner of a file");
    begin_with(&b, MIB, NJ_SYMLINKS_OWNER);
    make_links(&b);
    give(&b, "in", 1234);
    cr_expect_eq(peek(&b, "in"), NJ_FILE_ABSENT, "their link, our file");
    give(&b, "a.txt", 1234);
    expect_text(&b, "in", "inside");
    cr_expect_eq(peek(&b, "folder/up"), NJ_FILE_ABSENT, "our link, their file");
    give(&b, "in", 0);
    give(&b, "a.txt", 0);

    give(&b, "folder", 1234);
    cr_expect_eq(peek(&b, "folder/b.txt"), NJ_FILE_ABSENT, "a link in the middle, to our folder");
    cr_expect_eq(peek(&b, "folder"), NJ_FILE_ABSENT);
    cr_expect_eq(peek(&b, "chain"), NJ_FILE_ABSENT, "a link to a link");
    give(&b, "d", 1234);
    expect_text(&b, "folder/b.txt", "deep");
    give(&b, "chain", 1234);
    cr_expect_eq(peek(&b, "chain"), NJ_FILE_ABSENT, "the target of the last link is ours");
    give(&b, "chain", 0);
    expect_text(&b, "chain", "inside");
    end(&b);
}

struct swapper {
    char made[PATH_MAX], link[PATH_MAX], ours[PATH_MAX], theirs[PATH_MAX];
    _Atomic bool stop;
    _Atomic uint32_t n_swaps;
};

/* A link of 1234, to a file of 1234 and to one of root's in turn; and the file itself likewise. */
static void *swap(void *arg)
{
    struct swapper *s = arg;

    while (!atomic_load(&s->stop)) {
        bool ours = atomic_fetch_add(&s->n_swaps, 1) % 2;
        if (symlink(ours ? "ours" : "theirs", s->made) < 0 || lchown(s->made, 1234, 1234) < 0 ||
            rename(s->made, s->link) < 0)
            abort();
        if (rename(s->ours, s->theirs) < 0 || rename(s->theirs, s->ours) < 0)
            abort();
        int fd = open(s->theirs, O_WRONLY | O_CREAT, 0644);
        if (fd < 0 || fchown(fd, 1234, 1234) < 0 || write(fd, "theirs", 6) != 6)
            abort();
        close(fd);
    }
    return NULL;
}

/* The owner check applies to the file that was opened, even if links are replaced at any moment. */
Test(store_file_root, links_that_change_under_our_eyes, .timeout = 60)
{
    static struct swapper s;
    struct bench b;
    pthread_t thread;
    uint32_t n_ok = 0;

    if (geteuid() != 0)
        cr_skip("only root can change the owner of a file");
    begin_with(&b, MIB, NJ_SYMLINKS_OWNER);
    write_file(&b, "ours", "ours!!", 6);
    write_file(&b, "theirs", "theirs", 6);
    give(&b, "theirs", 1234);
    strcpy(s.ours, at(&b, "ours"));
    strcpy(s.theirs, at(&b, "theirs"));
    strcpy(s.link, at(&b, "link"));
    strcpy(s.made, at(&b, "made"));
    pthread_create(&thread, NULL, swap, &s);
    while (atomic_load(&s.n_swaps) < 3000) {
        if (open_job(&b, "link") == NJ_FILE_OK) {
            const struct nj_file_object *o = b.job.object;
            cr_assert_not(o->size_bytes == 6 && memcmp(o->bytes, "ours!!", 6) == 0,
                          "root's file by a link of 1234");
            nj_ref_put(&b.job.object->ref);
            n_ok++;
        }
        nj_file_store_run_housekeeping(b.store);
    }
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    cr_log_info("%u of them opened", n_ok);
    end(&b);
}

/* The text of the root's file "f", which identifies the root. */
static char text_of(struct nj__root *r)
{
    char c = 0;
    int fd = nj__root_openat(r, "f", O_RDONLY);
    cr_assert_geq(fd, 0);
    cr_assert_eq(read(fd, &c, 1), 1);
    close(fd);
    return c;
}

Test(store_file_root, another_root_under_the_same_name)
{
    struct nj__root r;
    struct bench b;
    char aside[sizeof b.root + 8], err[256];
    begin(&b, MIB);
    write_file(&b, "f", "old", 3);
    cr_assert_eq(nj__root_open(&r, b.root, NJ_SYMLINKS_BENEATH, err, sizeof err), 0);
    snprintf(aside, sizeof aside, "%s.old", b.root);
    cr_assert_eq(rename(b.root, aside), 0);
    r.checked_ms -= 1000;
    cr_expect_eq(text_of(&r), 'o', "while there is none, the old one");
    cr_assert_eq(mkdir(b.root, 0755), 0);
    write_file(&b, "f", "new", 3);
    r.checked_ms -= 1000;
    cr_expect_eq(text_of(&r), 'n');
    nj__root_close(&r);
    end(&b);
}

struct looker {
    struct nj__root *r;
    _Atomic bool *stop;
    uint32_t n[2]; /* look-ups that found the old one, the new one */
};

static void *look_up(void *arg)
{
    struct looker *l = arg;

    while (!atomic_load(l->stop)) {
        char c = text_of(l->r);
        cr_assert(c == 'o' || c == 'n');
        l->n[c == 'n']++;
    }
    return NULL;
}

/* Two folders are renamed to each other's name repeatedly, while threads open files in the root.
 * Each look-up finds one of the two folders, and at the end the last one. */
Test(store_file_root, another_root_while_threads_look, .timeout = 60)
{
    enum { N = 3, ROUNDS = 3000 };
    static struct looker l[N];
    struct nj__root r;
    struct bench b;
    pthread_t thread[N];
    _Atomic bool stop = false;
    char other[sizeof b.root + 8], file[sizeof b.root + 16], err[256];

    begin(&b, MIB);
    write_file(&b, "f", "old", 3);
    snprintf(other, sizeof other, "%s.new", b.root);
    snprintf(file, sizeof file, "%s/f", other);
    cr_assert_eq(mkdir(other, 0755), 0);
    FILE *f = fopen(file, "w");
    cr_assert(f && fputs("new", f) >= 0 && fclose(f) == 0);
    cr_assert_eq(nj__root_open(&r, b.root, NJ_SYMLINKS_OWNER, err, sizeof err), 0);
    for (uint32_t i = 0; i < N; i++) {
        l[i] = (struct looker){.r = &r, .stop = &stop};
        pthread_create(&thread[i], NULL, look_up, &l[i]);
    }
    for (uint32_t i = 0; i < 2 * ROUNDS + 1; i++) {
        cr_assert_eq(renameat2(AT_FDCWD, b.root, AT_FDCWD, other, RENAME_EXCHANGE), 0);
        atomic_fetch_sub(&r.checked_ms, 1000);
        text_of(&r);
    }
    atomic_store(&stop, true);
    uint32_t n[2] = {0};
    for (uint32_t i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        n[0] += l[i].n[0];
        n[1] += l[i].n[1];
    }
    cr_log_info("%u found the old one, %u the new one", n[0], n[1]);
    atomic_fetch_sub(&r.checked_ms, 1000);
    cr_expect_eq(text_of(&r), 'n');
    nj__root_close(&r);
    end(&b);
}

Test(store_file_root, root_that_becomes_unreadable)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "a", "x", 1);
    cr_assert_eq(peek(&b, "a"), NJ_FILE_OK);
    cr_assert_eq(chmod(b.root, 0), 0);
    bool root = geteuid() == 0;
    if (root)
        cr_assert_eq(chmod(scratch, 0755) | seteuid(65534), 0);
    cr_expect_eq(peek(&b, "a"), NJ_FILE_DENIED, "and not from the cache either");
    if (root)
        cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(chmod(b.root, 0755), 0);
    end(&b);
}

/* Siblings. */

static uint8_t siblings(struct bench *b, const char *name)
{
    memset(&b->job, 0, sizeof b->job);
    b->job.op = NJ_FILE_OPEN;
    b->job.wants_siblings = true;
    strcpy(b->job.path, name);
    nj_file_store_do_job(b->store, &b->job);
    cr_assert_eq(b->job.result, NJ_FILE_OK);
    nj_ref_put(&b->job.object->ref);
    return b->job.siblings;
}

#define BR   (1u << NJ_CODING_BR)
#define ZSTD (1u << NJ_CODING_ZSTD)
#define GZIP (1u << NJ_CODING_GZIP)
#define T    INT64_C(1000000000500000000)

static enum nj_file_result list(const struct bench *b, const char *path, const char *shown,
                                char *page, size_t n_page)
{
    struct nj_file_job job = {.op = NJ_FILE_LIST};

    snprintf(job.path, sizeof job.path, "%s%c%s", path, 0, shown);
    nj_file_store_do_job(b->store, &job);
    if (job.object) {
        snprintf(page, n_page, "%.*s", (int)job.object->size_bytes, job.object->bytes);
        nj_ref_put(&job.object->ref);
    }
    return job.result;
}

/* A path of a site: its folder is a root of its own, within the root or elsewhere. */
Test(store_file_root, roots_of_sites)
{
    static const enum nj_symlinks rules[] = {NJ_SYMLINKS_NONE, NJ_SYMLINKS_OWNER,
                                             NJ_SYMLINKS_BENEATH};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct bench b;
        char name[PATH_MAX], page[4096];

        begin_with(&b, MIB, rules[i]);
        cr_assert_eq(mkdir(at(&b, "a"), 0755), 0);
        cr_assert_eq(mkdir(at(&b, "a/d"), 0755), 0);
        cr_assert_eq(mkdir(at(&b, "b"), 0755), 0);
        write_file(&b, "a/f", "of a", 4);
        write_file(&b, "b/f", "of b", 4);
        write_file(&b, "f", "of the server", 13);
        cr_assert_eq(symlink("../b/f", at(&b, "a/out")), 0);
        cr_assert_eq(symlink("../../f", at(&b, "a/d/out")), 0);
        cr_assert_eq(symlink("../f", at(&b, "a/d/in")), 0);
        expect_text(&b, "/a//f", "of a");
        expect_text(&b, "/b//f", "of b");
        expect_text(&b, "/.//a/f", "of a");
        expect_text(&b, "f", "of the server");
        snprintf(name, sizeof name, "/%s/b//f", b.root);
        expect_text(&b, name, "of b");
        cr_expect_eq(peek(&b, "/a//d/in"),
                     rules[i] == NJ_SYMLINKS_NONE ? NJ_FILE_ABSENT : NJ_FILE_OK);
        cr_expect_eq(peek(&b, "/a//out"), NJ_FILE_ABSENT, "within the root, but not the site's");
        cr_expect_eq(peek(&b, "/a//d/out"), NJ_FILE_ABSENT);
        cr_expect_eq(peek(&b, "/a//../b/f"), NJ_FILE_ABSENT, "even if the site let it through");
        cr_expect_eq(peek(&b, "/a//"), NJ_FILE_IS_DIR);
        cr_expect_eq(peek(&b, "/none//f"), NJ_FILE_ABSENT);
        cr_expect_eq(peek(&b, "/f//f"), NJ_FILE_ABSENT, "a file is no root");
        cr_expect_eq(peek(&b, "/..//f"), NJ_FILE_ABSENT);
        cr_expect_eq(peek(&b, "/"), NJ_FILE_IS_DIR, "the root itself");
        cr_expect_eq(peek(&b, "//"), NJ_FILE_IS_DIR, "only the operator can give such a name");
        cr_assert_eq(list(&b, "/a/", "pub", page, sizeof page), NJ_FILE_OK);
        cr_expect(strstr(page, "Index of /pub/<") && strstr(page, "\"f\"") &&
                  !strstr(page, "\"out\""));
        cr_assert_eq(list(&b, "/a//d", "", page, sizeof page), NJ_FILE_OK);
        cr_expect(strstr(page, "Index of /<"));
        end(&b);
    }
}

Test(store_file_root, siblings)
{
    struct bench b;
    begin_with(&b, MIB, NJ_SYMLINKS_NONE);
    write_file(&b, "f", "plain", 5);
    set_mtime(&b, "f", T);
    cr_expect_eq(siblings(&b, "f"), 0);
    write_file(&b, "f.br", "b", 1);
    write_file(&b, "f.gz", "g", 1);
    write_file(&b, "f.zst", "z", 1);
    cr_expect_eq(siblings(&b, "f"), BR | GZIP | ZSTD);
    cr_expect_eq(siblings(&b, "f"), BR | GZIP | ZSTD, "also when the file is in the cache");
    cr_assert_eq(b.job.object->version.mtime_ns, T);

    set_mtime(&b, "f.br", T - 1);
    set_mtime(&b, "f.gz", T);
    set_mtime(&b, "f.zst", T - T % 1000000000);
    cr_expect_eq(siblings(&b, "f"), GZIP | ZSTD,
                 "tools that set whole seconds know no smaller unit");
    set_mtime(&b, "f.zst", T - T % 1000000000 - 1000000000);
    cr_expect_eq(siblings(&b, "f"), GZIP);

    /* Replaced by one with the same mtime. */
    wait_for_tick(&b, "f.gz");
    write_file(&b, "f", "other", 5);
    set_mtime(&b, "f", T);
    uint64_t n_stale = stats(&b)->stale_siblings;
    cr_expect_eq(siblings(&b, "f"), 0, "made from the former version");
    cr_expect_eq(stats(&b)->stale_siblings, n_stale + 3);
    set_mtime(&b, "f.gz", T);
    cr_expect_eq(siblings(&b, "f"), GZIP, "it counts as new when its times are set");

    cr_assert_eq(unlink(at(&b, "f.gz")), 0);
    cr_assert_eq(mkdir(at(&b, "f.gz"), 0755), 0);
    cr_assert_eq(unlink(at(&b, "f.zst")), 0);
    cr_assert_eq(symlink("f.br", at(&b, "f.zst")), 0);
    set_mtime(&b, "f.br", T);
    cr_expect_eq(siblings(&b, "f"), BR, "folders and links that are not followed are none");
    memset(&b.job, 0, sizeof b.job);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    cr_expect_eq(b.job.siblings, 0, "nobody asked");
    nj_ref_put(&b.job.object->ref);
    end(&b);
}

Test(store_file_root, unreadable_siblings)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "plain", 5);
    set_mtime(&b, "f", T);
    write_file(&b, "f.gz", "g", 1);
    cr_assert_eq(chmod(at(&b, "f.gz"), 0), 0);
    bool root = geteuid() == 0;
    if (root)
        cr_assert_eq(chmod(scratch, 0755) | seteuid(65534), 0);
    cr_expect_eq(siblings(&b, "f"), 0);
    if (root)
        cr_assert_eq(seteuid(0), 0);
    end(&b);
}

/* ext4 and XFS have times up to the years 2446 and 2486, tmpfs has any. */
Test(store_file_root, times_that_ns_cannot_hold)
{
    static const int64_t late_s = 13569465600; /* 2400-01-01 */
    struct timespec ts[2] = {{0, UTIME_OMIT}, {late_s, 0}};
    struct stat st;
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "new", 3);
    cr_assert_eq(utimensat(AT_FDCWD, at(&b, "f"), ts, 0), 0);
    cr_assert_eq(stat(at(&b, "f"), &st), 0);
    cr_assert_eq(st.st_mtim.tv_sec, late_s, "/tmp has a file system without such times");
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    cr_expect_eq(b.job.object->version.mtime_ns, NJ_FILE_TIME_MAX);
    nj_ref_put(&b.job.object->ref);
    end(&b);
}

Test(store_file_root, times)
{
    struct bench b;
    begin(&b, MIB);
    write_file(&b, "f", "new", 3);
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    cr_expect(b.job.object->is_racy, "it may change once more in this tick");
    nj_ref_put(&b.job.object->ref);
    set_mtime(&b, "f", T);
    wait_for_tick(&b, "f");
    cr_assert_eq(open_job(&b, "f"), NJ_FILE_OK);
    cr_expect_not(b.job.object->is_racy);
    cr_expect_eq(b.job.object->version.mtime_ns, T);
    nj_ref_put(&b.job.object->ref);
    end(&b);
}
