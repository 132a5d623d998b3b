// The connection to a host whose VMM has no virtio-serial: the host connects to this guest's agent over vsock, and this guest connects to the host to hand over output and report.
#ifndef VSOCK_H
#define VSOCK_H

// The agent's socket, which listens; -1 when there is no vsock device.
int vsock_listen(void);
// Connected and non-blocking, or -1 when the host does not accept within a moment. Bytes count as taken once the host has acknowledged them: see acknowledged.h.
int vsock_open_output(void);
int vsock_open_report(void);

#endif
