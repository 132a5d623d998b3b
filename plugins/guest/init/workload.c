// A parsed `run`; strings point into its own copy of the payload.
#include "workload.h"
#include "disks.h"
#include "protocol.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool malformed(struct failure *failure, const char *what) {
  return fail(failure, EINVAL, EXIT_BOOT_FAILED, "the workload is malformed: %s", what);
}

bool volume_parse(const struct field *field, struct fields *nested, struct volume *volume, struct failure *failure) {
  if (fields_parse(field->bytes, field->length, nested) != 0) return malformed(failure, "mount");
  *volume = (struct volume){
    .path = fields_string(nested, TAG_PATH, ""),
    .device = fields_string(nested, TAG_DEVICE, ""),
    .readonly = fields_number(nested, TAG_READONLY, 0) != 0,
    .overlay_device = fields_string(nested, TAG_OVERLAY_DEVICE, NULL),
  };
  const char *overlay = volume->overlay_device;
  if (volume->path[0] == '/' && disk_is_named(volume->device) && (overlay == NULL || disk_is_named(overlay))) return true;
  fields_free(nested);
  return malformed(failure, "mount path or device");
}

static bool add_volume(struct workload *workload, const struct field *field, struct failure *failure) {
  struct volume volume;
  if (workload->volume_count == WORKLOAD_MOUNTS_MAX) return malformed(failure, "too many mounts");
  if (!volume_parse(field, &workload->nested[workload->nested_count], &volume, failure)) return false;
  workload->nested_count++;
  // Shorter paths first, so that a volume inside of another one is mounted after it.
  size_t at = workload->volume_count++;
  for (; at > 0 && strlen(workload->volumes[at - 1].path) > strlen(volume.path); at--) {
    workload->volumes[at] = workload->volumes[at - 1];
  }
  workload->volumes[at] = volume;
  return true;
}

static bool read_fields(struct workload *workload, const struct fields *fields, struct failure *failure) {
  workload->argv = fields_list(fields, TAG_ARGV);
  workload->env = fields_list(fields, TAG_ENV);
  if (workload->argv == NULL || workload->env == NULL) return fail(failure, ENOMEM, EXIT_BOOT_FAILED, "out of memory");
  if (workload->argv[0] == NULL || workload->argv[0][0] == 0) return fail(failure, EINVAL, EXIT_NOT_FOUND, "argv names no command");
  workload->cwd = fields_string(fields, TAG_CWD, "/");
  workload->user = fields_string(fields, TAG_USER, "");
  workload->trusts = fields_find(fields, TAG_TRUST) != NULL;
  workload->trust_length = fields_number(fields, TAG_TRUST, 0);
  workload->agent = fields_number(fields, TAG_AGENT, 1) != 0;
  workload->kernel_headers = fields_string(fields, TAG_KERNEL_HEADERS, NULL);
  if (workload->kernel_headers != NULL && !disk_is_named(workload->kernel_headers)) return malformed(failure, "the device of the kernel's headers");
  if (!identity_parse(fields, &workload->identity, failure)) return false;
  for (size_t i = 0; i < fields->count; i++) {
    if (fields->items[i].tag == TAG_MOUNT && !add_volume(workload, &fields->items[i], failure)) return false;
  }
  return true;
}

bool workload_parse(struct workload *workload, const uint8_t *payload, size_t length, struct failure *failure) {
  struct fields fields;
  *workload = (struct workload){ .payload = malloc(length + 1) };
  if (workload->payload == NULL) return fail(failure, ENOMEM, EXIT_BOOT_FAILED, "out of memory");
  memcpy(workload->payload, payload, length);
  bool parsed = false;
  if (fields_parse(workload->payload, length, &fields) != 0) malformed(failure, "fields");
  else {
    parsed = read_fields(workload, &fields, failure);
    fields_free(&fields);
  }
  if (!parsed) workload_free(workload);
  return parsed;
}

void workload_free(struct workload *workload) {
  for (size_t i = 0; i < workload->nested_count; i++) fields_free(&workload->nested[i]);
  free(workload->argv);
  free(workload->env);
  free(workload->payload);
  *workload = (struct workload){ 0 };
}
