// Worker of Cloudflare that answers the requests to a domain with the responses of another host.

const settings = SETTINGS;

addEventListener("fetch", (event) => event.respondWith(respond(event.request)));

async function respond(request) {
  if (settings.credentials && !isAuthorized(request)) {
    const challenge = `Basic realm=${JSON.stringify(settings.realm)}, charset="UTF-8"`;
    return new Response("User and password are required.\n", {
      status: 401,
      headers: { "WWW-Authenticate": challenge },
    });
  }
  const asked = new URL(request.url);
  const target = new URL(request.url);
  target.hostname = settings.host;
  target.pathname = settings.pathPrefix + target.pathname;
  const headers = new Headers(request.headers);
  if (settings.credentials) {
    // These credentials are for this worker, not for the other host.
    headers.delete("Authorization");
  }
  const { method, body } = request;
  const response = await fetch(target.toString(), { method, headers, body, redirect: "manual" });
  const { status, statusText } = response;
  const result = new Response(response.body, { status, statusText, headers: response.headers });
  restoreHeaders(result.headers);
  const location = result.headers.get("Location");
  if (status >= 300 && status < 400 && location) {
    result.headers.set("Location", visibleLocation(location, asked, target));
  }
  return result;
}

function isAuthorized(request) {
  const [scheme, credentials] = (request.headers.get("Authorization") || "").split(" ");
  return scheme.toLowerCase() === "basic" && credentials === settings.credentials;
}

// Redirects within the other host stay at the domain, with the parameters of the request. Others are left alone.
function visibleLocation(location, asked, target) {
  const next = new URL(location, target);
  if (next.hostname !== settings.host) {
    return next.toString();
  }
  next.hostname = asked.hostname;
  next.protocol = asked.protocol;
  for (const [name, value] of asked.searchParams) {
    if (!next.searchParams.has(name)) {
      next.searchParams.append(name, value);
    }
  }
  return next.toString();
}

// Gateways of AWS rename these headers.
function restoreHeaders(headers) {
  const length = headers.get("x-content-length");
  if (length && headers.get("Content-Length") === "0") {
    headers.set("Content-Length", length);
  }
  const challenge = headers.get("x-amzn-remapped-www-authenticate");
  if (challenge) {
    headers.append("WWW-Authenticate", challenge);
  }
}
