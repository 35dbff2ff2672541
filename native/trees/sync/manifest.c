#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct file_header {
  char magic[8];
  uint64_t length; /* of what counts; behind it lies what a process had no time to complete */
  uint64_t options, generation;
  char boot[40];
};

static const char magic[8] = "vivman2", earlier_magic[8] = "vivman1"; /* the earlier one has a block once, and none that is gone */

#define REWRITE_BYTES (64u << 10) /* a small file is not written anew for each change */

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9ull;
  return hash ^ hash >> 32;
}

static uint64_t nanoseconds(const struct timespec *time) { return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec; }

uint64_t times_of(const struct stat *status) { return mix(mix(1, nanoseconds(&status->st_mtim)), nanoseconds(&status->st_ctim)); }

uint64_t print_of_folder(const struct stat *status) {
  return mix(mix(mix(2, status->st_mode), status->st_uid), status->st_gid) | 1;
}

uint64_t print_of(const struct stat *status) {
  return mix(mix(mix(times_of(status), print_of_folder(status)), (uint64_t)status->st_size), status->st_ino) | 1;
}

uint64_t key_of(const struct stat *status) { return mix(mix(3, status->st_dev), status->st_ino) | 1; }

static uint64_t hash_path(const char *path) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (; *path != '\0'; path++) hash = (hash ^ (unsigned char)*path) * 0x100000001B3ull;
  return hash ^ hash >> 32;
}

/* The slot of a path, or the free one where it belongs. */
static struct slot *locate(const struct manifest *manifest, const char *path) {
  for (size_t at = hash_path(path) & (manifest->room - 1);; at = (at + 1) & (manifest->room - 1)) {
    struct slot *slot = &manifest->slots[at];
    if (slot->block == NULL || strcmp(slot->block->path, path) == 0) return slot;
  }
}

static void resize(struct manifest *manifest, size_t room) {
  struct manifest larger = *manifest;
  larger.room = room;
  larger.slots = calloc(room, sizeof *larger.slots);
  if (larger.slots == NULL) abort();
  for (size_t index = 0; index < manifest->room; index++)
    if (manifest->slots[index].block != NULL) *locate(&larger, manifest->slots[index].block->path) = manifest->slots[index];
  free(manifest->slots);
  *manifest = larger;
}

struct slot *manifest_find(struct manifest *manifest, const char *path) {
  struct slot *slot = locate(manifest, path);
  return slot->block == NULL || slot->dropped ? NULL : slot;
}

static struct slot *insert(struct manifest *manifest, const struct block *block) {
  if (manifest->count * 2 >= manifest->room) resize(manifest, manifest->room * 2);
  struct slot *slot = locate(manifest, block->path);
  if (slot->block == NULL) manifest->count++;
  slot->block = block;
  slot->dropped = slot->written = false;
  return slot;
}

void manifest_put(struct manifest *manifest, const struct block *block) {
  insert(manifest, block)->scanned = true;
  manifest->changed = true;
}

void manifest_drop(struct manifest *manifest, struct slot *slot) {
  slot->dropped = true;
  slot->scanned = slot->written = false;
  manifest->changed = true;
}

static bool entries_fit(const struct block *block) {
  const char *end = (const char *)block + block->length;
  const struct entry *entry = first_entry(block);
  for (uint32_t index = 0; index < block->count; index++) {
    size_t left = (size_t)(end - (const char *)entry);
    if (left < sizeof *entry + 8 || entry->length % 8 != 0 || entry->length > left || entry->length < sizeof *entry + 8) return false;
    if (memchr(entry->name, '\0', entry->length - sizeof *entry) == NULL) return false;
    entry = next_entry(entry);
  }
  return (const char *)entry == end;
}

static int index_blocks(struct manifest *manifest, const char *data, size_t length) {
  for (size_t at = sizeof(struct file_header); at < length;) {
    const struct block *block = (const void *)(data + at);
    bool sane = length - at > sizeof *block && block->length % 8 == 0 && block->length <= length - at &&
                block->entries % 8 == 0 && block->entries > sizeof *block && block->entries <= block->length &&
                data[at + block->entries - 1] == '\0';
    if (!sane) {
      errno = EBADMSG;
      return -1;
    }
    struct slot *slot = insert(manifest, block);
    slot->written = true;
    slot->dropped = block->empty == GONE;
    at += block->length;
  }
  return 0;
}

static void read_boot(char *boot, size_t room) {
  memset(boot, 0, room);
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (read(fd, boot, room - 1) < 0) memset(boot, 0, room);
  close(fd);
}

static int map_file(struct manifest *manifest, int fd) {
  struct stat status;
  struct file_header header;
  char boot[sizeof header.boot];
  if (fstat(fd, &status) != 0) return -1;
  bool whole = status.st_size >= (off_t)sizeof header && pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header;
  bool ours = whole && (memcmp(header.magic, magic, sizeof magic) == 0 || memcmp(header.magic, earlier_magic, sizeof magic) == 0);
  if (!ours || header.length > (uint64_t)status.st_size || header.length < sizeof header) {
    errno = EBADMSG;
    return -1;
  }
  read_boot(boot, sizeof boot);
  manifest->found = true;
  manifest->other_boot = memcmp(boot, header.boot, sizeof boot) != 0;
  manifest->options = header.options;
  manifest->generation = header.generation;
  manifest->length = header.length;
  /* Blocks are only ever added behind the others, never changed, so the mapping stays true until the end. */
  const char *data = mmap(NULL, header.length, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return -1;
  return index_blocks(manifest, data, header.length);
}

int manifest_load(struct manifest *manifest, const char *path) {
  *manifest = (struct manifest){0};
  resize(manifest, 1024);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT ? 0 : -1;
  int result = map_file(manifest, fd);
  /* What counts was written whole, so only a crash of the machine can damage it. */
  for (size_t index = 0; result == 0 && manifest->other_boot && index < manifest->room; index++) {
    if (manifest->slots[index].block == NULL || entries_fit(manifest->slots[index].block)) continue;
    errno = EBADMSG;
    result = -1;
  }
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

static struct file_header header_of(const struct manifest *manifest, size_t length) {
  struct file_header header = {.length = length, .options = manifest->options, .generation = manifest->generation};
  memcpy(header.magic, magic, sizeof magic);
  read_boot(header.boot, sizeof header.boot);
  return header;
}

int manifest_save(struct manifest *manifest, const char *path) {
  struct file_header header = {0};
  struct output output = {0};
  put_bytes(&output, &header, sizeof header);
  for (size_t index = 0; index < manifest->room; index++) {
    const struct slot *slot = &manifest->slots[index];
    if (slot->block != NULL && !slot->dropped) put_bytes(&output, slot->block, slot->block->length);
  }
  header = header_of(manifest, output.length);
  memcpy(output.data, &header, sizeof header);
  char *aside;
  if (asprintf(&aside, "%s.new", path) < 0) abort();
  int fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  int result = fd < 0 ? -1 : write_all(fd, output.data, output.length);
  if (fd >= 0 && close(fd) != 0) result = -1;
  if (result == 0) result = rename(aside, path);
  free(aside);
  output_free(&output);
  return result;
}

/* A block that says that the folder is gone. */
static void put_gone(struct output *output, const struct block *known) {
  struct output buffer = {0};
  block_begin(&buffer, known->path);
  block_end(&buffer);
  ((struct block *)(void *)buffer.data)->empty = GONE;
  put_bytes(output, buffer.data, buffer.length);
  output_free(&buffer);
}

/* What is not written yet; says how long all blocks that count are together. */
static size_t put_changed(const struct manifest *manifest, struct output *output) {
  size_t counts = 0;
  for (size_t index = 0; index < manifest->room; index++) {
    const struct slot *slot = &manifest->slots[index];
    if (slot->block == NULL) continue;
    if (!slot->dropped) counts += slot->block->length;
    if (slot->written) continue;
    if (slot->dropped) put_gone(output, slot->block);
    else put_bytes(output, slot->block, slot->block->length);
  }
  return counts;
}

static int write_at(int fd, const char *data, size_t length, size_t at) {
  while (length > 0) {
    ssize_t count = pwrite(fd, data, length, (off_t)at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    data += count;
    at += (size_t)count;
    length -= (size_t)count;
  }
  return 0;
}

int manifest_update(struct manifest *manifest, const char *path) {
  struct output output = {0};
  size_t counts = put_changed(manifest, &output), length = manifest->length + output.length;
  int result;
  if (length > 2 * counts + REWRITE_BYTES) result = manifest_save(manifest, path);
  else {
    struct file_header header = header_of(manifest, length);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    result = fd < 0 || write_at(fd, output.data, output.length, manifest->length) != 0 ? -1 : write_at(fd, (const char *)&header, sizeof header, 0);
    if (fd >= 0 && close(fd) != 0) result = -1;
  }
  output_free(&output);
  return result;
}

void block_begin(struct output *buffer, const char *path) {
  static const char zeros[8];
  struct block block = {0};
  size_t length = strlen(path) + 1, padding = -(sizeof block + length) % 8;
  buffer->length = 0;
  block.entries = (uint32_t)(sizeof block + length + padding);
  put_bytes(buffer, &block, sizeof block);
  put_bytes(buffer, path, length);
  put_bytes(buffer, zeros, padding);
}

void block_add(struct output *buffer, const struct entry *values, const char *name) {
  static const char zeros[8];
  struct entry entry = *values;
  size_t length = strlen(name) + 1, padding = -(sizeof entry + length) % 8;
  entry.length = (uint16_t)(sizeof entry + length + padding);
  put_bytes(buffer, &entry, sizeof entry);
  put_bytes(buffer, name, length);
  put_bytes(buffer, zeros, padding);
  struct block *block = (void *)buffer->data;
  block->count++;
  if (S_ISDIR(entry.mode)) return;
  block->files++;
  if (S_ISREG(entry.mode) && !(entry.flags & (BIG | UNREADABLE))) block->bytes += entry.size;
}

void block_end(struct output *buffer) { ((struct block *)(void *)buffer->data)->length = (uint32_t)buffer->length; }
