/* Mounts an NFSv3 export with FUSE, with the caches of the Linux NFS client. For tests on kernels without one.
 *
 *   nfs_mount nfs://SERVER/EXPORT?nfsport=PORT&mountport=PORT DIRECTORY [noalignwrite] [answers-per-loss=NUMBER]
 *
 * Each process is a machine: it has caches of its own. The kernel's caches are off (direct_io, timeouts of 0), so that
 * every call arrives here and is answered as Linux answers it with the default mount options:
 *
 * - Attributes are believed for 3 to 60 s, those of directories for 30 to 60 s. They are asked for whenever a file or a
 *   directory is opened ("close-to-open consistency").
 * - Names, and that there is no such name, are believed until the directory's times are seen to change by another machine, or
 *   a call that would create the name fails.
 * - Bytes are cached in pages. Those read are dropped when the file is seen to be changed by another machine. Those written
 *   are sent by stat, fsync, close and after a while. A page that is read and then written in part is sent as a whole, with
 *   the bytes that it had when it was read (nfs_can_extend_write), unless the mount option noalignwrite is given. A file open
 *   for reading and writing has a page read before a part of it is written (nfs_want_read_modify_write). The attributes in the
 *   answer to a WRITE count as this machine's change, if the answer does not have those before it
 *   (nfs_post_op_update_inode_force_wcc).
 * - What was written is kept until COMMIT, and sent again if the server has been restarted since.
 * - A request waits until the server answers (mount option "hard"). After a restart it is sent again, and may then find
 *   that it was carried out before. With answers-per-loss, that happens to one of so many requests that change names.
 * - A file that is removed while it is open is renamed to .nfs..., and removed when it is closed.
 * - There are no extended attributes, no fallocate, no O_TMPFILE, no flags of renameat2. Locks are local.
 *
 * One thread makes one request at a time. Memory of nodes and names is never freed.
 */
#define FUSE_USE_VERSION 34
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HANDLE_MAX = 64, NAME_SLOTS = 8192, NODE_SLOTS = 65536 };
/* Bytes of a READ or WRITE. */
enum { TRANSFER_MAX = 1 << 20 };
/* Pages of all files that may be cached: 512 MiB. Pages of a file that may be dirty: 32 MiB; uncommitted: 256 MiB. */
enum { PAGES_MAX = 131072, DIRTY_MAX = 8192, UNCOMMITTED_MAX = 65536 };
/* Milliseconds: acregmin, acregmax, acdirmin, acdirmax, and the age at which dirty pages are sent. */
enum { FILE_MIN = 3000, FILE_MAX = 60000, DIRECTORY_MIN = 30000, DIRECTORY_MAX = 60000, DIRTY_AGE = 30000 };

/* Half-open ranges within the page. A range with low == high is empty. */
struct page {
    bool uptodate;
    int dirty_low, dirty_high;
    int uncommitted_low, uncommitted_high;
    char bytes[PAGE];
};

/* A name in a directory. It counts while `generation` is the directory's. */
struct name {
    struct name *next;
    struct node *directory, *child; /* No child: there is no such name. */
    unsigned generation;
    char text[];
};

struct node {
    struct node *next;
    char handle[HANDLE_MAX];
    int handle_length;
    fattr3 attributes;
    long fetched, lifetime; /* Milliseconds. */
    bool is_stale;
    /* Of a directory: counts the changes by other machines. */
    unsigned generation;
    char *listing; /* Of a directory: names that end with a NUL. NULL: not read. */
    size_t listing_length;
    /* Of a file. */
    uint64_t size; /* Includes what was not sent. */
    int opens;
    struct page **pages;
    size_t page_slots;
    int dirty, uncommitted; /* Numbers of pages. */
    long dirty_since;
    char verifier[NFS3_WRITEVERFSIZE];
    int error; /* Of a write that failed after its call had returned. */
    struct node *hidden_in; /* The directory in which it is named .nfs... */
    char hidden_name[64];
};

static struct node *nodes[NODE_SLOTS], *root;
static struct name *names[NAME_SLOTS];
static long page_count;
static bool aligns_writes = true;
/* Of so many changes of names one is sent twice; 0: none. */
static long answers_per_loss;
/* Whether a file is being renamed to .nfs.... If that answer is lost, Linux leaves the file, as a loss would leave it here. */
static bool is_hiding;
static const char *url_text;
static struct nfs_context *nfs;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* ---- Requests ---- */

/* A request in flight. `keep` copies from the reply, which is freed after the callback. */
struct call {
    bool is_done, is_answered;
    void *result;
    size_t length;
    void (*keep)(void *result);
};

static void call_done(struct rpc_context *rpc, int status, void *data, void *context) {
    struct call *call = context;
    (void)rpc;
    call->is_done = true;
    call->is_answered = status == RPC_STATUS_SUCCESS && data;
    if (!call->is_answered) return;
    memcpy(call->result, data, call->length);
    if (call->keep) call->keep(call->result);
}

/* In libnfs, but not in its headers. */
struct handle { int length; char *bytes; };
extern const struct handle *nfs_get_rootfh(struct nfs_context *);

static void connect_to_server(void) {
    for (;;) {
        if (nfs) nfs_destroy_context(nfs);
        nfs = nfs_init_context();
        struct nfs_url *url = nfs ? nfs_parse_url_dir(nfs, url_text) : NULL;
        if (!url) {
            fprintf(stderr, "nfs_mount: %s is not a URL\n", url_text);
            exit(2);
        }
        nfs_set_autoreconnect(nfs, 0);
        int status = nfs_mount(nfs, url->server, url->path);
        nfs_destroy_url(url);
        if (status == 0) return;
        poll(NULL, 0, 200);
    }
}

static void wait_for(struct call *call) {
    struct rpc_context *rpc = nfs_get_rpc_context(nfs);
    while (!call->is_done) {
        struct pollfd descriptor = {.fd = rpc_get_fd(rpc), .events = rpc_which_events(rpc)};
        poll(&descriptor, 1, 1000);
        if (rpc_service(rpc, descriptor.revents) < 0) return;
    }
}

static int error_of(nfsstat3 status) {
    switch (status) {
    case NFS3ERR_NAMETOOLONG: return ENAMETOOLONG;
    case NFS3ERR_NOTEMPTY: return ENOTEMPTY;
    case NFS3ERR_DQUOT: return EDQUOT;
    case NFS3ERR_STALE: case NFS3ERR_BADHANDLE: return ESTALE;
    case NFS3ERR_REMOTE: return EREMOTE;
    case NFS3ERR_NOTSUPP: return EOPNOTSUPP;
    case NFS3ERR_NOT_SYNC: case NFS3ERR_BAD_COOKIE: case NFS3ERR_TOOSMALL: case NFS3ERR_SERVERFAULT:
    case NFS3ERR_BADTYPE: return EREMOTEIO;
    default: return status; /* The numbers of Linux. */
    }
}

/* Whether the answer counts as lost, so that the request is sent again and finds that it was carried out. The answer differs then
 * only for changes of names. */
static bool loses_answer(const char *procedure) {
    static long count;
    static const char *const changes[] = {
        "rpc_nfs3_link_async", "rpc_nfs3_rename_async", "rpc_nfs3_remove_async", "rpc_nfs3_mkdir_async", "rpc_nfs3_create_async"};
    if (!answers_per_loss || is_hiding) return false;
    for (size_t index = 0; index < sizeof changes / sizeof *changes; index++)
        if (!strcmp(procedure, changes[index])) return ++count % answers_per_loss == 0;
    return false;
}

/* Writes an unusual status to the log, and returns the error. */
static int noted(const char *procedure, nfsstat3 status) {
    if (status != NFS3_OK && status != NFS3ERR_NOENT && status != NFS3ERR_EXIST)
        fprintf(stderr, "nfs_mount: %s: %s\n", procedure, strerror(error_of(status)));
    return error_of(status);
}

/* Makes a request until the server answers it, and returns the status of the answer. */
#define REQUEST(procedure, arguments, answer, keeper)                                                             \
    ({                                                                                                             \
        for (;;) {                                                                                                 \
            struct call call = {.result = (answer), .length = sizeof *(answer), .keep = (keeper)};                 \
            if (procedure(nfs_get_rpc_context(nfs), call_done, (arguments), &call) == 0) wait_for(&call);          \
            bool is_answered = call.is_answered;                                                                   \
            if (!is_answered) connect_to_server();                                                                 \
            else if ((answer)->status == NFS3ERR_JUKEBOX) poll(NULL, 0, 500);                                      \
            else if (!loses_answer(#procedure)) break;                                                             \
        }                                                                                                          \
        noted(#procedure, (answer)->status);                                                                       \
    })

static nfs_fh3 handle_of(struct node *node) {
    return (nfs_fh3){.data = {node->handle_length, node->handle}};
}

static diropargs3 place(struct node *directory, const char *name) {
    return (diropargs3){handle_of(directory), (char *)name};
}

/* ---- Attributes ---- */

static void drop_clean_pages(struct node *node) {
    for (size_t index = 0; index < node->page_slots; index++) {
        struct page *page = node->pages[index];
        if (!page) continue;
        page->uptodate = false;
        if (page->dirty_low == page->dirty_high && page->uncommitted_low == page->uncommitted_high) {
            free(page);
            node->pages[index] = NULL;
            page_count--;
        }
    }
}

static bool same_time(nfstime3 a, nfstime3 b) { return a.seconds == b.seconds && a.nseconds == b.nseconds; }

/* What another machine changed is not in the caches. */
static void drop_caches(struct node *node) {
    node->generation++;
    free(node->listing);
    node->listing = NULL;
    drop_clean_pages(node);
}

/* Keeps attributes. A change is another machine's, unless it is known to be this one's. */
static void keep_attributes(struct node *node, const fattr3 *found, bool is_own) {
    const fattr3 *old = &node->attributes;
    bool is_changed = found->size != old->size || !same_time(found->mtime, old->mtime) || !same_time(found->ctime, old->ctime);
    bool is_directory = found->type == NF3DIR;
    long least = is_directory ? DIRECTORY_MIN : FILE_MIN, most = is_directory ? DIRECTORY_MAX : FILE_MAX;
    if (is_changed && !is_own && node->fetched) drop_caches(node);
    node->lifetime = is_changed || is_own ? least : node->lifetime * 2 < most ? node->lifetime * 2 : most;
    node->attributes = *found;
    if (node->size < found->size || !node->dirty) node->size = found->size;
    node->fetched = now();
}

static void keep_post(struct node *node, const post_op_attr *after) {
    if (after->attributes_follow) keep_attributes(node, &after->post_op_attr_u.attributes, false);
}

/* Keeps the attributes that an own change has left. It was the only change if the attributes before it are those known. */
static void keep_weak(struct node *node, const wcc_data *data) {
    const wcc_attr *before = &data->before.pre_op_attr_u.attributes;
    const fattr3 *old = &node->attributes;
    bool is_own = !data->before.attributes_follow
        || (before->size == old->size && same_time(before->mtime, old->mtime) && same_time(before->ctime, old->ctime));
    free(node->listing);
    node->listing = NULL;
    if (data->after.attributes_follow) keep_attributes(node, &data->after.post_op_attr_u.attributes, is_own);
    else node->lifetime = 0;
}

/* Asks for the attributes. */
static int revalidate(struct node *node) {
    GETATTR3args arguments = {handle_of(node)};
    GETATTR3res answer;
    int error = REQUEST(rpc_nfs3_getattr_async, &arguments, &answer, NULL);
    if (error == ESTALE) node->is_stale = true;
    if (!error) keep_attributes(node, &answer.GETATTR3res_u.resok.obj_attributes, false);
    return error;
}

/* Asks for the attributes if those known are too old. */
static int refresh(struct node *node) {
    if (node->is_stale) return ESTALE;
    return now() - node->fetched < node->lifetime ? 0 : revalidate(node);
}

static struct stat status_of(struct node *node) {
    const fattr3 *found = &node->attributes;
    static const mode_t types[] = {0, S_IFREG, S_IFDIR, S_IFBLK, S_IFCHR, S_IFLNK, S_IFSOCK, S_IFIFO};
    return (struct stat){
        .st_ino = found->fileid, .st_mode = types[found->type] | found->mode, .st_nlink = found->nlink, .st_uid = found->uid,
        .st_gid = found->gid, .st_size = node->size, .st_blocks = found->used / 512, .st_blksize = TRANSFER_MAX,
        .st_atim = {found->atime.seconds, found->atime.nseconds}, .st_mtim = {found->mtime.seconds, found->mtime.nseconds},
        .st_ctim = {found->ctime.seconds, found->ctime.nseconds}};
}

/* ---- Nodes and names ---- */

static unsigned hash(const void *bytes, size_t length, unsigned seed) {
    const unsigned char *each = bytes;
    for (size_t index = 0; index < length; index++) seed = (seed ^ each[index]) * 16777619u;
    return seed ^ seed >> 15;
}

/* The node with a handle, which is new if there was none. */
static struct node *node_of(const char *handle, int length) {
    struct node **slot = &nodes[hash(handle, length, 2166136261u) % NODE_SLOTS];
    for (struct node *node = *slot; node; node = node->next)
        if (node->handle_length == length && !memcmp(node->handle, handle, length)) return node;
    struct node *node = calloc(1, sizeof *node);
    memcpy(node->handle, handle, node->handle_length = length);
    node->next = *slot;
    return *slot = node;
}

static struct node *node_at(fuse_ino_t number) { return number == FUSE_ROOT_ID ? root : (struct node *)number; }

static struct name *find_name(struct node *directory, const char *text) {
    struct name *name = names[hash(text, strlen(text), (unsigned)(uintptr_t)directory) % NAME_SLOTS];
    while (name && (name->directory != directory || strcmp(name->text, text))) name = name->next;
    return name;
}

static void keep_name(struct node *directory, const char *text, struct node *child) {
    struct name *name = find_name(directory, text);
    if (!name) {
        struct name **slot = &names[hash(text, strlen(text), (unsigned)(uintptr_t)directory) % NAME_SLOTS];
        name = calloc(1, sizeof *name + strlen(text) + 1);
        strcpy(name->text, text);
        name->directory = directory;
        name->next = *slot;
        *slot = name;
    }
    name->child = child;
    name->generation = directory->generation;
}

/* The next call asks the server. */
static void forget_name(struct node *directory, const char *text) {
    struct name *name = find_name(directory, text);
    if (name) name->generation = directory->generation - 1;
}

/* The handle in the last answer of LOOKUP, CREATE or MKDIR. */
static char found_handle[HANDLE_MAX];
static int found_length;

static void keep_handle(const nfs_fh3 *handle) {
    found_length = handle->data.data_len <= HANDLE_MAX ? handle->data.data_len : 0;
    memcpy(found_handle, handle->data.data_val, found_length);
}

static void keep_looked_up(void *result) {
    LOOKUP3res *answer = result;
    if (answer->status == NFS3_OK) keep_handle(&answer->LOOKUP3res_u.resok.object);
}

static void keep_created(void *result) {
    CREATE3res *answer = result;
    post_op_fh3 *handle = &answer->CREATE3res_u.resok.obj;
    found_length = 0;
    if (answer->status == NFS3_OK && handle->handle_follows) keep_handle(&handle->post_op_fh3_u.handle);
}

static void keep_made(void *result) {
    MKDIR3res *answer = result;
    post_op_fh3 *handle = &answer->MKDIR3res_u.resok.obj;
    found_length = 0;
    if (answer->status == NFS3_OK && handle->handle_follows) keep_handle(&handle->post_op_fh3_u.handle);
}

/* Asks the server for a name. */
static int look_up_anew(struct node *directory, const char *text, struct node **child) {
    diropargs3 what = place(directory, text);
    LOOKUP3args arguments = {what};
    LOOKUP3res answer;
    *child = NULL;
    int error = REQUEST(rpc_nfs3_lookup_async, &arguments, &answer, keep_looked_up);
    if (error == ESTALE) directory->is_stale = true;
    if (error == ENOENT) keep_post(directory, &answer.LOOKUP3res_u.resfail.dir_attributes);
    if (!error) {
        keep_post(directory, &answer.LOOKUP3res_u.resok.dir_attributes);
        *child = node_of(found_handle, found_length);
        (*child)->is_stale = false;
        if (answer.LOOKUP3res_u.resok.obj_attributes.attributes_follow)
            keep_post(*child, &answer.LOOKUP3res_u.resok.obj_attributes);
        else error = revalidate(*child);
    }
    if (!error || error == ENOENT) keep_name(directory, text, *child);
    return error;
}

/* Finds a name in the cache, or asks the server. */
static int look_up(struct node *directory, const char *text, struct node **child) {
    int error = refresh(directory);
    if (error) return error;
    struct name *name = find_name(directory, text);
    if (name && name->generation == directory->generation) {
        *child = name->child;
        if (!name->child) return ENOENT;
        error = refresh(name->child);
        if (error != ESTALE) return error;
    }
    return look_up_anew(directory, text, child);
}

/* ---- Pages ---- */

static struct page *page_at(struct node *node, size_t index) { return index < node->page_slots ? node->pages[index] : NULL; }

static struct page *make_page(struct node *node, size_t index) {
    if (index >= node->page_slots) {
        size_t slots = index + index / 2 + 8;
        node->pages = realloc(node->pages, slots * sizeof *node->pages);
        memset(node->pages + node->page_slots, 0, (slots - node->page_slots) * sizeof *node->pages);
        node->page_slots = slots;
    }
    if (!node->pages[index]) {
        node->pages[index] = calloc(1, sizeof **node->pages);
        page_count++;
    }
    return node->pages[index];
}

static bool is_dirty(const struct page *page) { return page && page->dirty_low != page->dirty_high; }
static bool is_uncommitted(const struct page *page) { return page && page->uncommitted_low != page->uncommitted_high; }

static void set_dirty(struct node *node, struct page *page, int low, int high) {
    if (is_dirty(page)) {
        low = low < page->dirty_low ? low : page->dirty_low;
        high = high > page->dirty_high ? high : page->dirty_high;
    } else if (node->dirty++ == 0) node->dirty_since = now();
    page->dirty_low = low;
    page->dirty_high = high;
}

/* Whether the server has another verifier than before: it was restarted, and may have lost what it had not committed. */
static bool has_restarted(struct node *node, const char *verifier) {
    bool is_same = !memcmp(node->verifier, verifier, NFS3_WRITEVERFSIZE);
    memcpy(node->verifier, verifier, NFS3_WRITEVERFSIZE);
    if (is_same || !node->uncommitted) return false;
    fprintf(stderr, "nfs_mount: the server was restarted: %d pages are sent again\n", node->uncommitted);
    for (size_t index = 0; index < node->page_slots; index++) {
        struct page *page = node->pages[index];
        if (!is_uncommitted(page)) continue;
        set_dirty(node, page, page->uncommitted_low, page->uncommitted_high);
        page->uncommitted_low = page->uncommitted_high = 0;
    }
    node->uncommitted = 0;
    return true;
}

/* Sends the dirty bytes of contiguous pages from `first` on. They stay dirty if the server was restarted meanwhile. */
static int send_run(struct node *node, size_t first) {
    static char buffer[TRANSFER_MAX];
    size_t length = 0, last = first;
    for (;; last++) {
        struct page *page = page_at(node, last);
        int count = page->dirty_high - page->dirty_low;
        memcpy(buffer + length, page->bytes + page->dirty_low, count);
        length += count;
        struct page *next = page_at(node, last + 1);
        if (page->dirty_high < PAGE || !is_dirty(next) || next->dirty_low > 0 || length + PAGE > TRANSFER_MAX) break;
    }
    uint64_t offset = (uint64_t)first * PAGE + page_at(node, first)->dirty_low;
    for (size_t sent = 0; sent < length;) {
        WRITE3args arguments = {
            .file = handle_of(node), .offset = offset + sent, .count = length - sent, .stable = UNSTABLE,
            .data = {length - sent, buffer + sent}};
        WRITE3res answer;
        int error = REQUEST(rpc_nfs3_write_async, &arguments, &answer, NULL);
        if (error == ESTALE) node->is_stale = true;
        if (error) return error;
        sent += answer.WRITE3res_u.resok.count;
        keep_weak(node, &answer.WRITE3res_u.resok.file_wcc);
        if (has_restarted(node, answer.WRITE3res_u.resok.verf)) return 0;
    }
    for (size_t index = first; index <= last; index++) {
        struct page *page = page_at(node, index);
        if (is_uncommitted(page)) {
            page->uncommitted_low = page->dirty_low < page->uncommitted_low ? page->dirty_low : page->uncommitted_low;
            page->uncommitted_high = page->dirty_high > page->uncommitted_high ? page->dirty_high : page->uncommitted_high;
        } else {
            page->uncommitted_low = page->dirty_low;
            page->uncommitted_high = page->dirty_high;
            node->uncommitted++;
        }
        page->dirty_low = page->dirty_high = 0;
        node->dirty--;
    }
    return 0;
}

/* Sends all dirty pages. Those that the server refuses are lost, and the error is returned by the next call. */
static int send_dirty(struct node *node) {
    for (size_t index = 0; node->dirty; index = index + 1 < node->page_slots ? index + 1 : 0) {
        int error = is_dirty(node->pages[index]) ? send_run(node, index) : 0;
        if (!error) continue;
        node->error = error;
        for (index = 0; index < node->page_slots; index++)
            if (node->pages[index]) node->pages[index]->dirty_low = node->pages[index]->dirty_high = 0;
        node->dirty = 0;
    }
    return node->error;
}

/* Sends all dirty pages, and has the server commit them. */
static int commit(struct node *node) {
    for (;;) {
        int error = send_dirty(node);
        if (error || !node->uncommitted) {
            node->error = 0;
            return error;
        }
        COMMIT3args arguments = {.file = handle_of(node), .offset = 0, .count = 0};
        COMMIT3res answer;
        error = REQUEST(rpc_nfs3_commit_async, &arguments, &answer, NULL);
        if (error) return error;
        keep_weak(node, &answer.COMMIT3res_u.resok.file_wcc);
        if (has_restarted(node, answer.COMMIT3res_u.resok.verf)) continue;
        for (size_t index = 0; index < node->page_slots; index++)
            if (node->pages[index]) node->pages[index]->uncommitted_low = node->pages[index]->uncommitted_high = 0;
        node->uncommitted = 0;
    }
}

static void for_each_node(void (*body)(struct node *)) {
    for (int slot = 0; slot < NODE_SLOTS; slot++)
        for (struct node *node = nodes[slot]; node; node = node->next) body(node);
}

static void send_old(struct node *node) {
    if (node->dirty && now() - node->dirty_since > DIRTY_AGE) send_dirty(node);
}

static void limit_pages(void) {
    if (page_count > PAGES_MAX) for_each_node(drop_clean_pages);
}

static char *read_target;
static size_t read_count;

static void keep_bytes(void *result) {
    READ3res *answer = result;
    if (answer->status != NFS3_OK) return;
    read_count = answer->READ3res_u.resok.data.data_len;
    memcpy(read_target, answer->READ3res_u.resok.data.data_val, read_count);
}

/* Reads pages that are not up to date and not dirty. */
static int read_pages(struct node *node, size_t first, size_t end) {
    static char buffer[TRANSFER_MAX];
    while (first < end) {
        size_t count = (end - first) * PAGE < TRANSFER_MAX ? (end - first) * PAGE : TRANSFER_MAX, done = 0;
        memset(buffer, 0, count);
        for (bool is_end = false; done < count && !is_end;) {
            READ3args arguments = {handle_of(node), (uint64_t)first * PAGE + done, count - done};
            READ3res answer;
            read_target = buffer + done;
            int error = REQUEST(rpc_nfs3_read_async, &arguments, &answer, keep_bytes);
            if (error == ESTALE) node->is_stale = true;
            if (error) return error;
            keep_post(node, &answer.READ3res_u.resok.file_attributes);
            done += read_count;
            is_end = answer.READ3res_u.resok.eof || !read_count;
        }
        for (size_t offset = 0; offset < count; offset += PAGE, first++) {
            struct page *page = make_page(node, first);
            memcpy(page->bytes, buffer + offset, PAGE);
            page->uptodate = true;
        }
    }
    return 0;
}

/* Makes the pages of a range up to date. */
static int fill(struct node *node, size_t first, size_t end) {
    for (size_t index = first; index < end; index++) {
        struct page *page = page_at(node, index);
        if (page && page->uptodate) continue;
        if (is_dirty(page)) {
            int error = send_dirty(node);
            if (error) return error;
        }
        size_t last = index + 1;
        while (last < end && (!page_at(node, last) || (!page_at(node, last)->uptodate && !is_dirty(page_at(node, last))))) last++;
        int error = read_pages(node, index, last);
        if (error) return error;
        index = last - 1;
    }
    return 0;
}

static int write_page(struct node *node, size_t index, int low, int high, const char *bytes, bool is_readable) {
    struct page *page = make_page(node, index);
    uint64_t begin = (uint64_t)index * PAGE;
    int length = node->size <= begin ? 0 : node->size - begin < PAGE ? node->size - begin : PAGE;
    bool is_whole = length == 0 || (low == 0 && high >= length);
    if (!page->uptodate && !is_dirty(page) && !is_whole && is_readable) {
        int error = read_pages(node, index, index + 1);
        if (error) return error;
        page = make_page(node, index);
    }
    if (is_dirty(page) && (low > page->dirty_high || high < page->dirty_low)) {
        int error = send_dirty(node);
        if (error) return error;
        page = make_page(node, index);
    }
    memcpy(page->bytes + low, bytes, high - low);
    if (is_whole && !page->uptodate) {
        if (length == 0) memset(page->bytes, 0, low);
        memset(page->bytes + high, 0, PAGE - high);
        page->uptodate = true;
    }
    if (page->uptodate && aligns_writes) {
        low = 0;
        high = high > length ? high : length;
    }
    set_dirty(node, page, low, high);
    if (begin + high > node->size) node->size = begin + high;
    return 0;
}

/* Cuts the pages off at a length. None is dirty. */
static void truncate_pages(struct node *node, uint64_t size) {
    for (size_t index = size / PAGE; index < node->page_slots; index++) {
        struct page *page = node->pages[index];
        int rest = index == size / PAGE ? size % PAGE : 0;
        if (!page) continue;
        memset(page->bytes + rest, 0, PAGE - rest);
        if (!is_uncommitted(page) || page->uncommitted_high <= rest) continue;
        page->uncommitted_high = rest;
        if (page->uncommitted_low < rest) continue;
        page->uncommitted_low = page->uncommitted_high = 0;
        node->uncommitted--;
    }
}

/* ---- FUSE ---- */

static void reply_entry(fuse_req_t request, struct node *node) {
    struct fuse_entry_param entry = {.ino = node == root ? FUSE_ROOT_ID : (fuse_ino_t)node, .attr = status_of(node)};
    fuse_reply_entry(request, &entry);
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *text) {
    struct node *child;
    int error = look_up(node_at(parent), text, &child);
    if (error) fuse_reply_err(request, error);
    else reply_entry(request, child);
}

static void reply_status(fuse_req_t request, struct node *node) {
    struct stat status = status_of(node);
    fuse_reply_attr(request, &status, 0);
}

/* Linux sends dirty pages first, so that the times are the server's. */
static void do_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    (void)info;
    send_dirty(node);
    int error = refresh(node);
    if (error) fuse_reply_err(request, error);
    else reply_status(request, node);
}

static int set_attributes(struct node *node, sattr3 attributes) {
    SETATTR3args arguments = {.object = handle_of(node), .new_attributes = attributes};
    SETATTR3res answer;
    int error = REQUEST(rpc_nfs3_setattr_async, &arguments, &answer, NULL);
    if (!error) keep_weak(node, &answer.SETATTR3res_u.resok.obj_wcc);
    return error;
}

static void do_setattr(fuse_req_t request, fuse_ino_t number, struct stat *wanted, int set, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    sattr3 attributes = {0};
    (void)info;
    send_dirty(node);
    if (set & FUSE_SET_ATTR_MODE) attributes.mode = (set_mode3){1, {wanted->st_mode & 07777}};
    if (set & FUSE_SET_ATTR_UID) attributes.uid = (set_uid3){1, {wanted->st_uid}};
    if (set & FUSE_SET_ATTR_GID) attributes.gid = (set_gid3){1, {wanted->st_gid}};
    if (set & FUSE_SET_ATTR_SIZE) attributes.size = (set_size3){1, {wanted->st_size}};
    if (set & FUSE_SET_ATTR_ATIME_NOW) attributes.atime.set_it = SET_TO_SERVER_TIME;
    else if (set & FUSE_SET_ATTR_ATIME)
        attributes.atime = (set_atime){SET_TO_CLIENT_TIME, {{wanted->st_atim.tv_sec, wanted->st_atim.tv_nsec}}};
    if (set & FUSE_SET_ATTR_MTIME_NOW) attributes.mtime.set_it = SET_TO_SERVER_TIME;
    else if (set & FUSE_SET_ATTR_MTIME)
        attributes.mtime = (set_mtime){SET_TO_CLIENT_TIME, {{wanted->st_mtim.tv_sec, wanted->st_mtim.tv_nsec}}};
    int error = set_attributes(node, attributes);
    if (!error && set & FUSE_SET_ATTR_SIZE) {
        truncate_pages(node, wanted->st_size);
        node->size = wanted->st_size;
    }
    if (error) fuse_reply_err(request, error);
    else reply_status(request, node);
}

static sattr3 with_mode(mode_t mode) { return (sattr3){.mode = {1, {mode & 07777}}}; }

static void do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *text, mode_t mode) {
    struct node *directory = node_at(parent), *child;
    MKDIR3args arguments = {place(directory, text), with_mode(mode)};
    MKDIR3res answer;
    int error = REQUEST(rpc_nfs3_mkdir_async, &arguments, &answer, keep_made);
    keep_weak(directory, error ? &answer.MKDIR3res_u.resfail.dir_wcc : &answer.MKDIR3res_u.resok.dir_wcc);
    forget_name(directory, text);
    if (!error) error = look_up_anew(directory, text, &child);
    if (error) fuse_reply_err(request, error);
    else reply_entry(request, child);
}

static int rename_name(struct node *from, const char *text, struct node *to, const char *new_text) {
    RENAME3args arguments = {place(from, text), place(to, new_text)};
    RENAME3res answer;
    int error = REQUEST(rpc_nfs3_rename_async, &arguments, &answer, NULL);
    if (error) return error;
    keep_weak(from, &answer.RENAME3res_u.resok.fromdir_wcc);
    if (to != from) keep_weak(to, &answer.RENAME3res_u.resok.todir_wcc);
    return 0;
}

static int remove_name(struct node *directory, const char *text) {
    REMOVE3args arguments = {place(directory, text)};
    REMOVE3res answer;
    int error = REQUEST(rpc_nfs3_remove_async, &arguments, &answer, NULL);
    keep_weak(directory, error ? &answer.REMOVE3res_u.resfail.dir_wcc : &answer.REMOVE3res_u.resok.dir_wcc);
    if (!error || error == ENOENT) keep_name(directory, text, NULL);
    return error;
}

/* Gives an open file that is to lose its name another one. */
static int hide(struct node *directory, const char *text, struct node *child) {
    static unsigned count;
    if (child->hidden_in) return EBUSY;
    snprintf(child->hidden_name, sizeof child->hidden_name, ".nfs%016llx%08x%08x", (unsigned long long)child->attributes.fileid,
        (unsigned)getpid(), ++count);
    is_hiding = true;
    int error = rename_name(directory, text, directory, child->hidden_name);
    is_hiding = false;
    if (error) return error;
    child->hidden_in = directory;
    keep_name(directory, child->hidden_name, child);
    keep_name(directory, text, NULL);
    return 0;
}

static bool is_open_file(struct node *node) { return node->opens && node->attributes.type == NF3REG; }

static void do_unlink(fuse_req_t request, fuse_ino_t parent, const char *text) {
    struct node *directory = node_at(parent), *child;
    int error = look_up(directory, text, &child);
    if (!error) error = is_open_file(child) ? hide(directory, text, child) : remove_name(directory, text);
    if (!error && !child->hidden_in) child->lifetime = 0; /* The number of links. */
    fuse_reply_err(request, error);
}

static void do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *text) {
    struct node *directory = node_at(parent);
    RMDIR3args arguments = {place(directory, text)};
    RMDIR3res answer;
    int error = REQUEST(rpc_nfs3_rmdir_async, &arguments, &answer, NULL);
    keep_weak(directory, error ? &answer.RMDIR3res_u.resfail.dir_wcc : &answer.RMDIR3res_u.resok.dir_wcc);
    if (!error || error == ENOENT) keep_name(directory, text, NULL);
    fuse_reply_err(request, error);
}

static void do_rename(
    fuse_req_t request, fuse_ino_t parent, const char *text, fuse_ino_t new_parent, const char *new_text, unsigned flags) {
    struct node *from = node_at(parent), *to = node_at(new_parent), *child, *target;
    int error = flags ? EINVAL : look_up(from, text, &child);
    if (!error && look_up(to, new_text, &target) == 0 && target != child) {
        if (is_open_file(target)) error = hide(to, new_text, target);
        else target->lifetime = 0;
    }
    if (!error) error = rename_name(from, text, to, new_text);
    if (!error) {
        child->lifetime = 0; /* Its ctime. */
        keep_name(from, text, NULL);
        keep_name(to, new_text, child);
    }
    if (error == ESTALE || error == ENOENT) from->generation++;
    fuse_reply_err(request, error);
}

static void do_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t new_parent, const char *new_text) {
    struct node *node = node_at(number), *directory = node_at(new_parent);
    LINK3args arguments = {handle_of(node), place(directory, new_text)};
    LINK3res answer;
    send_dirty(node);
    int error = REQUEST(rpc_nfs3_link_async, &arguments, &answer, NULL);
    forget_name(directory, new_text);
    if (!error) {
        /* The change of ctime is this machine's. */
        if (answer.LINK3res_u.resok.file_attributes.attributes_follow)
            keep_attributes(node, &answer.LINK3res_u.resok.file_attributes.post_op_attr_u.attributes, true);
        keep_weak(directory, &answer.LINK3res_u.resok.linkdir_wcc);
        keep_name(directory, new_text, node);
        reply_entry(request, node);
        return;
    }
    fuse_reply_err(request, error);
}

static void opened(struct node *node, struct fuse_file_info *info) {
    node->opens++;
    info->fh = info->flags;
    info->direct_io = 1;
}

static void do_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    int error = node->is_stale ? ESTALE : revalidate(node);
    if (!error && info->flags & O_TRUNC) {
        error = set_attributes(node, (sattr3){.size = {1, {0}}});
        if (!error) {
            truncate_pages(node, 0);
            node->size = 0;
        }
    }
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    opened(node, info);
    if (fuse_reply_open(request, info)) node->opens--;
}

static void do_create(fuse_req_t request, fuse_ino_t parent, const char *text, mode_t mode, struct fuse_file_info *info) {
    static uint64_t count;
    struct node *directory = node_at(parent), *child;
    CREATE3args arguments = {.where = place(directory, text)};
    CREATE3res answer;
    bool is_exclusive = info->flags & O_EXCL;
    if (is_exclusive) {
        /* The server recognizes the request by it, if it is sent again. */
        uint64_t verifier = (uint64_t)getpid() << 32 | ++count;
        arguments.how.mode = EXCLUSIVE;
        memcpy(arguments.how.createhow3_u.verf, &verifier, sizeof verifier);
    } else {
        arguments.how.mode = UNCHECKED;
        arguments.how.createhow3_u.obj_attributes = with_mode(mode);
        if (info->flags & O_TRUNC) arguments.how.createhow3_u.obj_attributes.size = (set_size3){1, {0}};
    }
    int error = REQUEST(rpc_nfs3_create_async, &arguments, &answer, keep_created);
    keep_weak(directory, error ? &answer.CREATE3res_u.resfail.dir_wcc : &answer.CREATE3res_u.resok.dir_wcc);
    forget_name(directory, text);
    if (!error) {
        if (found_length) {
            child = node_of(found_handle, found_length);
            child->is_stale = false;
            keep_name(directory, text, child);
            error = revalidate(child);
        } else error = look_up_anew(directory, text, &child);
    }
    if (!error && is_exclusive) {
        /* The verifier is in the file's times. */
        sattr3 attributes = with_mode(mode);
        attributes.atime.set_it = attributes.mtime.set_it = SET_TO_SERVER_TIME;
        error = set_attributes(child, attributes);
    }
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    opened(child, info);
    struct fuse_entry_param entry = {.ino = (fuse_ino_t)child, .attr = status_of(child)};
    if (fuse_reply_create(request, &entry, info)) child->opens--;
}

static void do_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *info) {
    static char buffer[TRANSFER_MAX + PAGE];
    struct node *node = node_at(number);
    (void)info;
    int error = refresh(node);
    if (size > TRANSFER_MAX) size = TRANSFER_MAX;
    if ((uint64_t)offset >= node->size) size = 0;
    else if (size > node->size - offset) size = node->size - offset;
    if (!error && size) error = fill(node, offset / PAGE, (offset + size + PAGE - 1) / PAGE);
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    for (size_t done = 0; done < size;) {
        size_t index = (offset + done) / PAGE, begin = (offset + done) % PAGE;
        size_t count = PAGE - begin < size - done ? PAGE - begin : size - done;
        struct page *page = page_at(node, index);
        if (!page) {
            /* Another machine changed the file while it was read. */
            if (fill(node, index, index + 1)) break;
            page = make_page(node, index);
        }
        memcpy(buffer + done, page->bytes + begin, count);
        done += count;
    }
    fuse_reply_buf(request, buffer, size);
    limit_pages();
}

static void do_write(
    fuse_req_t request, fuse_ino_t number, const char *bytes, size_t size, off_t offset, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    int error = node->error;
    node->error = 0;
    if (info->fh & O_APPEND) {
        error = error ? error : refresh(node);
        offset = node->size;
    }
    bool is_readable = (info->fh & O_ACCMODE) == O_RDWR;
    for (size_t done = 0; !error && done < size;) {
        size_t begin = (offset + done) % PAGE, count = PAGE - begin < size - done ? PAGE - begin : size - done;
        error = write_page(node, (offset + done) / PAGE, begin, begin + count, bytes + done, is_readable);
        done += count;
    }
    if (!error && node->uncommitted > UNCOMMITTED_MAX) error = commit(node);
    else if (!error && node->dirty > DIRTY_MAX) error = send_dirty(node);
    if (error) fuse_reply_err(request, error);
    else fuse_reply_write(request, size);
    limit_pages();
}

static void do_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    (void)info;
    fuse_reply_err(request, commit(node_at(number)));
}

static void do_fsync(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info *info) {
    (void)only_data;
    do_flush(request, number, info);
}

static void do_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    (void)info;
    commit(node);
    if (--node->opens == 0 && node->hidden_in) {
        remove_name(node->hidden_in, node->hidden_name);
        node->hidden_in = NULL;
        node->is_stale = true;
    }
    fuse_reply_err(request, 0);
}

/* What an open directory lists: it is read with the first names, because one that is opened to be synced is not listed. */
struct listing {
    size_t length;
    char *names;
};

static struct node *listed;
static uint64_t list_cookie;

static void keep_listed(void *result) {
    READDIR3res *answer = result;
    if (answer->status != NFS3_OK) return;
    for (entry3 *entry = answer->READDIR3res_u.resok.reply.entries; entry; entry = entry->nextentry) {
        size_t length = strlen(entry->name) + 1;
        listed->listing = realloc(listed->listing, listed->listing_length + length);
        memcpy(listed->listing + listed->listing_length, entry->name, length);
        listed->listing_length += length;
        list_cookie = entry->cookie;
    }
}

static int read_listing(struct node *node) {
    cookieverf3 verifier = {0};
    listed = node;
    list_cookie = 0;
    node->listing = malloc(1);
    node->listing_length = 0;
    for (bool is_end = false; !is_end;) {
        READDIR3args arguments = {.dir = handle_of(node), .cookie = list_cookie, .count = 64 << 10};
        READDIR3res answer;
        memcpy(arguments.cookieverf, verifier, sizeof verifier);
        int error = REQUEST(rpc_nfs3_readdir_async, &arguments, &answer, keep_listed);
        if (error) {
            free(node->listing);
            node->listing = NULL;
            return error;
        }
        memcpy(verifier, answer.READDIR3res_u.resok.cookieverf, sizeof verifier);
        is_end = answer.READDIR3res_u.resok.reply.eof;
    }
    return 0;
}

static void do_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct node *node = node_at(number);
    int error = node->is_stale ? ESTALE : revalidate(node);
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    info->fh = (uintptr_t)calloc(1, sizeof(struct listing));
    if (fuse_reply_open(request, info)) free((struct listing *)(uintptr_t)info->fh);
}

/* Lists a directory for one that has opened it. */
static int list(struct node *node, struct listing *listing) {
    int error = node->listing ? 0 : read_listing(node);
    if (error) return error;
    free(listing->names);
    listing->names = malloc(node->listing_length + 1);
    memcpy(listing->names, node->listing, node->listing_length);
    listing->length = node->listing_length;
    return 0;
}

static void do_readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset, struct fuse_file_info *info) {
    struct listing *listing = (struct listing *)(uintptr_t)info->fh;
    int error = listing->names && offset > 0 ? 0 : list(node_at(number), listing);
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    char *buffer = malloc(size);
    size_t length = 0;
    while ((size_t)offset < listing->length) {
        const char *name = listing->names + offset;
        size_t next = offset + strlen(name) + 1;
        struct stat status = {.st_ino = 1};
        size_t needed = fuse_add_direntry(request, buffer + length, size - length, name, &status, next);
        if (needed > size - length) break;
        length += needed;
        offset = next;
    }
    fuse_reply_buf(request, buffer, length);
    free(buffer);
}

static void do_releasedir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info) {
    struct listing *listing = (struct listing *)(uintptr_t)info->fh;
    (void)number;
    free(listing->names);
    free(listing);
    fuse_reply_err(request, 0);
}

/* Changes of directories are durable when the server answers. */
static void do_fsyncdir(fuse_req_t request, fuse_ino_t number, int only_data, struct fuse_file_info *info) {
    (void)number, (void)only_data, (void)info;
    fuse_reply_err(request, 0);
}

static void do_statfs(fuse_req_t request, fuse_ino_t number) {
    FSSTAT3args arguments = {handle_of(node_at(number))};
    FSSTAT3res answer;
    int error = REQUEST(rpc_nfs3_fsstat_async, &arguments, &answer, NULL);
    const FSSTAT3resok *found = &answer.FSSTAT3res_u.resok;
    struct statvfs status = {
        .f_bsize = TRANSFER_MAX, .f_frsize = PAGE, .f_blocks = found->tbytes / PAGE, .f_bfree = found->fbytes / PAGE,
        .f_bavail = found->abytes / PAGE, .f_files = found->tfiles, .f_ffree = found->ffiles, .f_namemax = 255};
    if (error) fuse_reply_err(request, error);
    else fuse_reply_statfs(request, &status);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = do_lookup, .getattr = do_getattr, .setattr = do_setattr, .mkdir = do_mkdir, .unlink = do_unlink,
    .rmdir = do_rmdir, .rename = do_rename, .link = do_link, .open = do_open, .create = do_create, .read = do_read,
    .write = do_write, .flush = do_flush, .fsync = do_fsync, .release = do_release, .opendir = do_opendir,
    .readdir = do_readdir, .releasedir = do_releasedir, .fsyncdir = do_fsyncdir, .statfs = do_statfs};

static void send_all(struct node *node) { commit(node); }

int main(int count, char **arguments) {
    bool is_valid = count >= 3;
    for (int index = 3; index < count; index++) {
        if (!strcmp(arguments[index], "noalignwrite")) aligns_writes = false;
        else is_valid = is_valid && sscanf(arguments[index], "answers-per-loss=%ld", &answers_per_loss) == 1;
    }
    if (!is_valid) {
        fprintf(stderr, "usage: nfs_mount URL DIRECTORY [noalignwrite] [answers-per-loss=NUMBER]\n");
        return 2;
    }
    url_text = arguments[1];
    connect_to_server();
    const struct handle *handle = nfs_get_rootfh(nfs);
    root = node_of(handle->bytes, handle->length);
    if (revalidate(root)) return 1;
    char *options[] = {arguments[0], "-o", "allow_other,fsname=nfs_mount,subtype=nfs_mount"};
    struct fuse_args fuse_arguments = FUSE_ARGS_INIT(3, options);
    struct fuse_session *session = fuse_session_new(&fuse_arguments, &operations, sizeof operations, NULL);
    if (!session || fuse_set_signal_handlers(session) || fuse_session_mount(session, arguments[2])) return 1;
    struct fuse_buf buffer = {0};
    long last = now();
    while (!fuse_session_exited(session)) {
        struct pollfd descriptor = {.fd = fuse_session_fd(session), .events = POLLIN};
        if (poll(&descriptor, 1, 1000) > 0) {
            int length = fuse_session_receive_buf(session, &buffer);
            if (length == -EINTR) continue;
            if (length <= 0) break;
            fuse_session_process_buf(session, &buffer);
        }
        if (now() - last > 1000) {
            for_each_node(send_old);
            last = now();
        }
    }
    for_each_node(send_all);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return 0;
}
