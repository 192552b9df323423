/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders as pages: which entries are listed, and the limit of their number. */
#include "store_rig.h"

#include <sys/resource.h>

#include "store/dir_reader.h"

TestSuite(store_dir_reader, .fini = scratch_remove);

static enum nj_file_result list(struct bench *b, const char *path)
{
    memset(&b->job, 0, sizeof b->job);
    b->job.op = NJ_FILE_LIST;
    b->job.json = true;
    strcpy(b->job.path, path);
    nj_file_store_do_job(b->store, &b->job);
    cr_assert_eq(b->job.object != NULL, b->job.result == NJ_FILE_OK);
    return b->job.result;
}

/* The page as text; only the names of it. */
static char *page_of(struct bench *b)
{
    const struct nj_file_object *o = b->job.object;
    char *text = calloc(1, o->size_bytes + 1);
    memcpy(text, o->bytes, o->size_bytes);
    return text;
}

static void names_of(struct bench *b, const char *path, char *out)
{
    cr_assert_eq(list(b, path), NJ_FILE_OK);
    char *text = page_of(b);
    *out = '\0';
    for (const char *p = text; (p = strstr(p, "\"name\":\"")); p++)
        out += sprintf(out, "%.*s ", (int)strcspn(p + 8, "\""), p + 8);
    free(text);
    nj_ref_put(&b->job.object->ref);
    nj_file_store_run_housekeeping(b->store);
}

static void fill_folder(struct bench *b)
{
    write_file(b, "b", "12345", 5);
    write_file(b, "a", "", 0);
    write_file(b, ".hidden", "", 0);
    write_file(b, "back\\slash", "", 0);
    cr_assert_eq(mkdir(at(b, "z"), 0755), 0);
    cr_assert_eq(mkdir(at(b, ".git"), 0755), 0);
    cr_assert_eq(mkfifo(at(b, "fifo"), 0644), 0);
    cr_assert_eq(symlink("b", at(b, "link")), 0);
    cr_assert_eq(symlink("z", at(b, "folder")), 0);
    cr_assert_eq(symlink("none", at(b, "dangling")), 0);
    cr_assert_eq(symlink("/etc/passwd", at(b, "out")), 0);
    cr_assert_eq(symlink("fifo", at(b, "pipe")), 0);
}

Test(store_dir_reader, what_is_shown)
{
    static const struct {
        enum nj_symlinks symlinks;
        const char *names;
    } cases[] = {
        {NJ_SYMLINKS_BENEATH, "folder z a b link "},
        {NJ_SYMLINKS_OWNER, "folder z a b link "},
        {NJ_SYMLINKS_NONE, "z a b "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        char names[256];
        begin_with(&b, MIB, cases[i].symlinks);
        fill_folder(&b);
        names_of(&b, "", names);
        cr_expect_str_eq(names, cases[i].names);
        end(&b);
    }
}

Test(store_dir_reader, links_of_others)
{
    struct bench b;
    char names[256];
    if (geteuid() != 0)
        cr_skip("only root can change the owner of a file");
    begin_with(&b, MIB, NJ_SYMLINKS_OWNER);
    fill_folder(&b);
    cr_assert_eq(lchown(at(&b, "link"), 1234, 1234), 0);
    names_of(&b, "", names);
    cr_expect_str_eq(names, "folder z a b ");
    end(&b);
}

Test(store_dir_reader, page)
{
    struct bench b;
    begin(&b, MIB);
    cr_assert_eq(mkdir(at(&b, "d"), 0755), 0);
    write_file(&b, "d/f", "123", 3);
    set_mtime(&b, "d/f", INT64_C(784111777500000000));
    cr_assert_eq(symlink("f", at(&b, "d/l")), 0);
    cr_assert_eq(list(&b, "d"), NJ_FILE_OK);
    cr_expect_eq(b.job.object->version.mtime_ns, NJ_FILE_TIME_MIN);
    char *text = page_of(&b);
    cr_expect_str_eq(
        text, "{\"path\":\"/d/\",\"entries\":[\n"
              "{\"name\":\"f\",\"type\":\"file\",\"size\":3,\"mtime\":\"1994-11-06T08:49:37Z\","
              "\"href\":\"f\"},\n"
              "{\"name\":\"l\",\"type\":\"file\",\"size\":3,\"mtime\":\"1994-11-06T08:49:37Z\","
              "\"href\":\"l\"}\n]}\n");
    free(text);
    nj_ref_put(&b.job.object->ref);
    cr_expect_eq(stats(&b)->listings, 1);
    nj_file_store_run_housekeeping(b.store);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 0, "no cache keeps it");
    cr_expect_eq(stats(&b)->whole_bytes, 0);

    cr_expect_eq(list(&b, "none"), NJ_FILE_ABSENT);
    cr_expect_eq(list(&b, "d/f"), NJ_FILE_ABSENT);
    cr_expect_eq(list(&b, "../x"), NJ_FILE_ABSENT);
    cr_assert_eq(chmod(at(&b, "d"), 0711), 0);
    bool root = geteuid() == 0;
    if (root)
        cr_assert_eq(chmod(scratch, 0755) | seteuid(65534), 0);
    cr_expect_eq(list(&b, "d"), NJ_FILE_DENIED);
    if (root)
        cr_assert_eq(seteuid(0), 0);
    end(&b);
}

static void make_files(struct bench *b, uint32_t first, uint32_t end)
{
    char name[16];
    for (uint32_t i = first; i < end; i++) {
        snprintf(name, sizeof name, "f%06u", i);
        cr_assert_eq(mknod(at(b, name), S_IFREG | 0644, 0), 0);
    }
}

/* All of the files that make_files() made are listed, in order. */
static void expect_all(struct bench *b, uint32_t n)
{
    char want[32];
    cr_assert_eq(list(b, ""), NJ_FILE_OK);
    char *text = page_of(b);
    const char *end = text + b->job.object->size_bytes, *p = text;
    uint32_t i = 0;
    /* A line for each. strstr() of ASan looks for the end of the text in each call. */
    for (; (p = memchr(p, '\n', (size_t)(end - p))) && p[1] == '{'; i++) {
        snprintf(want, sizeof want, "{\"name\":\"f%06u\"", i);
        cr_assert_eq(strncmp(++p, want, strlen(want)), 0, "%u: %.20s", i, p);
    }
    cr_expect_eq(i, n);
    free(text);
    nj_ref_put(&b->job.object->ref);
    nj_file_store_run_housekeeping(b->store);
}

/* A list has all names, or there is none: with some of them, a tool would miss the others. */
Test(store_dir_reader, as_many_as_there_are)
{
    struct bench b;
    begin(&b, MIB);
    make_files(&b, 0, 10001);
    expect_all(&b, 10001);
    make_files(&b, 10001, NJ_DIR_ENTRIES_MAX);
    write_file(&b, ".hidden", "", 0);
    expect_all(&b, NJ_DIR_ENTRIES_MAX);
    cr_expect_eq(stats(&b)->listings_failed, 0);
    make_files(&b, NJ_DIR_ENTRIES_MAX, NJ_DIR_ENTRIES_MAX + 1);
    cr_expect_eq(list(&b, ""), NJ_FILE_BROKEN);
    cr_expect_eq(stats(&b)->listings_failed, 1);
    cr_expect_eq(nj_file_store_count_held_objects(b.store), 0);
    end(&b);
}

/* Names that become long in HTML and in URLs: the page would take too much memory. */
Test(store_dir_reader, page_that_is_too_long)
{
    struct bench b;
    char name[256];
    begin(&b, MIB);
    memset(name, '&', 240);
    for (uint32_t i = 0; i < NJ_DIR_PAGE_BYTES / (240 * 8); i++) {
        snprintf(name + 240, sizeof name - 240, "%u", i);
        cr_assert_eq(mknod(at(&b, name), S_IFREG | 0644, 0), 0);
    }
    memset(&b.job, 0, sizeof b.job);
    b.job.op = NJ_FILE_LIST;
    nj_file_store_do_job(b.store, &b.job);
    cr_expect_eq(b.job.result, NJ_FILE_BROKEN);
    cr_expect(!b.job.object && stats(&b)->whole_bytes == 0 && stats(&b)->listings_failed == 1);
    end(&b);
}

/* A folder whose names can be read and whose files cannot be looked at: not a list without them. */
Test(store_dir_reader, folder_without_x)
{
    struct bench b;
    begin(&b, MIB);
    cr_assert_eq(mkdir(at(&b, "d"), 0755), 0);
    write_file(&b, "d/f", "", 0);
    cr_assert_eq(chmod(at(&b, "d"), 0744), 0);
    bool root = geteuid() == 0;
    if (root)
        cr_assert_eq(chmod(scratch, 0755) | seteuid(65534), 0);
    cr_expect_eq(list(&b, "d"), NJ_FILE_DENIED);
    if (root)
        cr_assert_eq(seteuid(0), 0);
    end(&b);
}

/* Links need descriptors: without any, the list is refused and not shortened. */
Test(store_dir_reader, no_descriptor_for_a_link)
{
    struct bench b;
    struct rlimit limit;
    begin(&b, MIB);
    write_file(&b, "f", "", 0);
    cr_assert_eq(symlink("f", at(&b, "l")), 0);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = open("/dev/null", O_RDONLY); /* the folder may have this one */
    cr_assert_geq(next, 0);
    close(next);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + 1, limit.rlim_max}), 0);
    cr_expect_eq(list(&b, ""), NJ_FILE_NO_MEMORY);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    end(&b);
}
