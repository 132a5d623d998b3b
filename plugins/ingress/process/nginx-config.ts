// nginx's configuration. It contains no rule: nginx asks this server (decide/) which instance a request goes to, for each host and first segment of a path at most once a second.
import { SESSION_COOKIE } from '../../../core/auth/session-cookie.ts'
import { durationMs } from '../../../core/config/quantities.ts'
import type { IngressConfig } from '../manifest.ts'
import { DECISION_SOCKET, STATUS_SOCKET } from './paths.ts'

/** Bytes of one header line, and lines of that size; the deciding server accepts as much. */
const HEADER_BUFFER = 16_384
const HEADER_BUFFERS = 4
export const MOST_HEADER_BYTES = HEADER_BUFFER * HEADER_BUFFERS

/** A path whose first segment every program reads the same way: nothing is encoded, empty or a dot. */
const SEGMENT = '[A-Za-z0-9_~-][A-Za-z0-9._~-]*'
const PLAIN_PATH = `~^(?<berth_segment>/${SEGMENT})(?:/${SEGMENT})*/?(?:\\?|$)`

/** Of a `Cookie` header: a session of this server's own console. */
const SESSION = `(?<![^;\\s])(?:__Host-)?${SESSION_COOKIE}=`

export function renderConfig ({ listen, limits }: IngressConfig): string {
  const idle = `${Math.ceil(durationMs(limits.idle) / 1000)}s`
  const plain = listen.http.map((port) => `    listen ${listen.address}:${port};`)
  const secure = listen.https.map((port) => `    listen ${listen.address}:${port} ssl http2;`)
  return `daemon off;
pid run/nginx.pid;
error_log stderr warn;
worker_processes ${limits.workers};
worker_rlimit_nofile ${limits.connections * 2 + 256};
worker_shutdown_timeout 5s;
events { worker_connections ${limits.connections * 2 + 64}; }
http {
${general(limits.connectionsPerClient)}
${maps()}
  upstream berth {
    server unix:${DECISION_SOCKET};
    keepalive 32;
  }
  server {
    listen unix:run/${STATUS_SOCKET};
    access_log off;
    location = /status { stub_status; }
    location / { return 404; }
  }
${plain.length === 0 ? '' : server(plain, '    location ^~ /.well-known/acme-challenge/ { default_type application/octet-stream; root challenges; try_files $uri @all; }', idle)}
${secure.length === 0 ? '' : server([...secure, ...certificates()], '', idle)}
}
`
}

function general (connectionsPerClient: number): string {
  return `  server_tokens off;
  recursive_error_pages on;
  default_type text/plain;
  root empty;
  client_body_temp_path temporary/body;
  proxy_temp_path temporary/proxy;
  fastcgi_temp_path temporary/fastcgi;
  uwsgi_temp_path temporary/uwsgi;
  scgi_temp_path temporary/scgi;
  # Answers of the server, which outlive it; the server removes those that hold no more.
  proxy_cache_path kept keys_zone=kept:8m max_size=64m inactive=30d use_temp_path=off;
  open_log_file_cache max=1000 inactive=20s valid=5s min_uses=1;
  log_format requests escape=json '{"time":"$time_iso8601","ms":"$msec","client":"$remote_addr","protocol":"$server_protocol","tls":"$https","method":"$request_method","host":"$host","path":"$berth_path","status":"$status","bytes_in":"$request_length","bytes_out":"$bytes_sent","seconds":"$request_time","ingress":"$berth_ingress","target":"$berth_target","connected":"$upstream_connect_time"}';
  client_header_timeout 15s;
  client_body_timeout 60s;
  send_timeout 60s;
  keepalive_timeout 75s;
  reset_timedout_connection on;
  client_header_buffer_size 4k;
  large_client_header_buffers ${HEADER_BUFFERS} ${HEADER_BUFFER};
  client_max_body_size 0;
  limit_conn_zone $binary_remote_addr zone=clients:4m;
  limit_conn clients ${connectionsPerClient};
  limit_conn_status 429;
  ssl_protocols TLSv1.2 TLSv1.3;
  ssl_session_cache shared:sessions:4m;
  ssl_session_tickets off;`
}

function maps (): string {
  return `  map $request_uri $berth_first { default odd; "~^/(?:\\?|$)" /; "${PLAIN_PATH}" $berth_segment; }
  map $request_uri $berth_path { default ""; "~^(?<berth_before>[^?]*)" $berth_before; }
  map $http_upgrade $berth_upgrade { default ""; "~*^websocket$" websocket; }
  map $berth_upgrade $berth_connection { default upgrade; "" close; }
  map $http_content_type $berth_grpc { default ""; "~^application/grpc(?:$|[;+])" yes; }
  map $server_port $berth_port { default ":$server_port"; 80 ""; 443 ""; }
  # Browsers send cookies to each port of a host, and a session of the console is for no program. There may be one of each name, with TLS and without.
${withoutSession('http_cookie', 'berth_cookies')}
${withoutSession('berth_cookies', 'berth_cookies_2')}
  map $berth_cookies_2 $berth_cookie { default $berth_cookies_2; "~${SESSION}" ""; }
  map $ssl_server_name $berth_exact { default none; "~^(?<berth_name>[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)$" $berth_name; }
  map $ssl_server_name $berth_certificate { default $berth_exact; include open-hosts.map; }
  # A connection is for the name that its certificate was chosen by: another one is asked for over another connection.
  map "$ssl_server_name|$host" $berth_misdirected { default yes; "~^\\|" ""; "~^([^|]*)\\|\\1$" ""; }`
}

/** A map from one variable to another, without the first session in it. */
function withoutSession (from: string, to: string): string {
  return `  map $${from} $${to} { default $${from}; "~^(?<${to}_before>.*?)${SESSION}[^;]*(?:;\\s*|$)(?<${to}_after>.*)$" $${to}_before$${to}_after; }`
}

function certificates (): string[] {
  return ['    ssl_certificate certificates/$berth_certificate.pem;', '    ssl_certificate_key certificates/$berth_certificate.pem;', '    if ($berth_misdirected) { return 421 "This connection was made for another host.\\n"; }']
}

function server (listening: readonly string[], more: string, idle: string): string {
  return `  server {
${listening.join('\n')}
    server_name _;
    access_log requests/$berth_instance.jsonl requests if=$berth_instance;
    # Of a server that is away, whose answer was not kept.
    error_page 500 = @away;
    error_page 403 = @refused;
    error_page 502 504 = @unreachable;
    set $berth_instance "";
    set $berth_ingress "";
    set $berth_status "";
    auth_request_set $berth_target $upstream_http_x_berth_target;
    auth_request_set $berth_instance $upstream_http_x_berth_instance;
    auth_request_set $berth_ingress $upstream_http_x_berth_ingress;
    auth_request_set $berth_status $upstream_http_x_berth_status;
    auth_request_set $berth_reason $upstream_http_x_berth_reason;
    auth_request_set $berth_location $upstream_http_x_berth_location;
${locations(idle)}
${more}
  }`
}

function locations (idle: string): string {
  return `    location / {
      if ($berth_grpc) { return 418; }
      error_page 418 = @grpc;
      error_page 500 = @away;
      error_page 403 = @refused;
      error_page 502 504 = @unreachable;
${toProgram(idle)}
    }
    location @all {
${toProgram(idle)}
    }
    location @grpc {
      auth_request /.berth-decide;
      grpc_pass grpc://$berth_target;
${headers('grpc_set_header').join('\n')}
      grpc_ignore_headers X-Accel-Redirect X-Accel-Charset;
      grpc_connect_timeout 5s;
      grpc_read_timeout ${idle};
      grpc_send_timeout ${idle};
      grpc_socket_keepalive on;
    }
${DECIDE}
    location @refused {
      if ($berth_status = 308) { return 308 $berth_location; }
      if ($berth_status = 400) { return 400 "$berth_reason\\n"; }
      if ($berth_status = 403) { return 403 "$berth_reason\\n"; }
      if ($berth_status = 404) { return 404 "$berth_reason\\n"; }
      return 503 "$berth_reason\\n";
    }
    location @unreachable { return 502 "The program in the instance does not answer on this port.\\n"; }
    location @away { return 503 "The server that knows this host is away.\\n"; }`
}

const DECIDE = `    location = /.berth-decide {
      internal;
      proxy_pass http://berth/decide;
      proxy_http_version 1.1;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Connection "";
      proxy_set_header Upgrade "";
      proxy_set_header Host berth;
      proxy_set_header X-Berth-Host $host;
      proxy_set_header X-Berth-Port $server_port;
      proxy_set_header X-Berth-Uri $request_uri;
      proxy_set_header X-Berth-Client $remote_addr;
      proxy_connect_timeout 2s;
      proxy_read_timeout 70s;
      proxy_buffer_size 16k;
      proxy_buffers 4 16k;
      proxy_busy_buffers_size 32k;
      proxy_cache kept;
      proxy_cache_key "$server_port $host $berth_first";
      # How long an answer holds is said by each: X-Accel-Expires.
      proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;
      proxy_cache_use_stale error timeout;
    }`

function toProgram (idle: string): string {
  return `      auth_request /.berth-decide;
      proxy_pass http://$berth_target;
      proxy_http_version 1.1;
${headers('proxy_set_header').join('\n')}
      proxy_set_header Upgrade $berth_upgrade;
      proxy_set_header Connection $berth_connection;
      # A program says nothing to nginx itself.
      proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;
      proxy_pass_header Server;
      proxy_pass_header Date;
      proxy_redirect off;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_buffer_size 64k;
      proxy_buffers 8 64k;
      proxy_busy_buffers_size 128k;
      proxy_next_upstream off;
      proxy_connect_timeout 5s;
      proxy_read_timeout ${idle};
      proxy_send_timeout ${idle};
      proxy_socket_keepalive on;`
}

/** Headers about the client for the program, whatever the client sends. */
function headers (directive: string): string[] {
  return [
    ['Host', '$host$berth_port'], ['X-Real-IP', '$remote_addr'], ['X-Forwarded-For', '$remote_addr'], ['X-Forwarded-Proto', '$scheme'], ['X-Forwarded-Host', '$host$berth_port'],
    ['X-Forwarded-Port', '$server_port'], ['Cookie', '$berth_cookie'], ['Forwarded', '""'], ['Proxy', '""'], ['X-Berth-Host', '""'], ['X-Berth-Port', '""'], ['X-Berth-Uri', '""'], ['X-Berth-Client', '""']
  ].map(([name, value]) => `      ${directive} ${name} ${value};`)
}
