// Gives the front of a file back to the disk, while somebody appends to it.
#pragma once

// Cuts a file with more than `limit` bytes down to its newest half of that, with a line in front that tells of it. Returns the bytes that are left.
long long cut(int fd, long long limit);
