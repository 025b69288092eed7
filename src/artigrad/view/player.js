"use strict";
// Plays a recorded motion: WebGL 2, no libraries, nothing fetched. Data comes from two script elements of the page:
// `header`, JSON that says what lies where, and `data`, the arrays, compressed and in base64. See page.py.

const element = (id) => document.getElementById(id);

// -- vectors and matrices (columns first, as WebGL wants them) ---------------------------------------------------------
const add = (a, b, s = 1) => a.map((x, i) => x + s * b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((x) => x / Math.hypot(...a));

function times(a, b) {
  const out = new Float32Array(16);
  for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) {
    let sum = 0;
    for (let k = 0; k < 4; k++) sum += a[4 * k + r] * b[4 * c + k];
    out[4 * c + r] = sum;
  }
  return out;
}

function lookFrom(eye, back) {
  const right = unit(cross([0, 0, 1], back)), up = cross(back, right);
  return new Float32Array([
    right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
    -dot(right, eye), -dot(up, eye), -dot(back, eye), 1]);
}

function perspective(angle, aspect, near, far) {
  const f = 1 / Math.tan(angle / 2);
  return new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0,
    0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
}

function parallel(reach) {
  return new Float32Array([1 / reach, 0, 0, 0, 0, 1 / reach, 0, 0, 0, 0, -1 / (4 * reach), 0, 0, 0, 0, 1]);
}

function pose(p, q) {
  const [w, x, y, z] = q;
  return new Float32Array([
    1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y), 0,
    2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x), 0,
    2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), 0, ...p, 1]);
}

// -- shaders -----------------------------------------------------------------------------------------------------------
const VERTEX = `#version 300 es
layout(location = 0) in vec3 point; layout(location = 1) in vec3 normal;
uniform mat4 model, view; uniform vec3 scale; uniform float nearer;
out vec3 at, n;
void main() {
  vec4 world = model * vec4(point * scale, 1.0);
  at = world.xyz; n = mat3(model) * (normal / scale); gl_Position = view * world;
  gl_Position.z -= nearer * gl_Position.w;
}`;
const LIGHT = `#version 300 es
precision highp float; precision highp sampler2DShadow;
in vec3 at, n; uniform sampler2DShadow shadow; uniform mat4 lamp; uniform vec3 toLight, eye;
out vec4 colour;
float lit(vec3 p) {
  vec4 s = lamp * vec4(p, 1.0); vec3 c = s.xyz * 0.5 + 0.5;
  if (any(greaterThan(abs(s.xy), vec2(1.0)))) return 1.0;
  float sum = 0.0;
  for (int i = -2; i <= 2; i++) for (int j = -2; j <= 2; j++)
    sum += texture(shadow, vec3(c.xy + vec2(i, j) / 1024.0, c.z));
  return sum / 25.0;
}`;
const SOLID = LIGHT + `
uniform vec4 paint; uniform float size;
void main() {
  vec3 m = normalize(n), half_way = normalize(toLight + normalize(eye - at));
  float lamp_light = max(dot(m, toLight), 0.0) * lit(at + 0.012 * size * m);
  float gloss = lamp_light > 0.0 ? pow(max(dot(m, half_way), 0.0), 32.0) : 0.0;
  vec3 light = paint.rgb * paint.rgb * (0.26 + 0.28 * (0.5 + 0.5 * m.z) + 0.62 * lamp_light) + 0.16 * gloss;
  colour = vec4(sqrt(light) * paint.a, paint.a);
}`;
const FLOOR = LIGHT + `
uniform float tile, size; uniform vec3 focus;
void main() {
  vec2 cell = at.xy / tile, blur = fwidth(cell);
  vec2 side = clamp((abs(fract(cell * 0.5) - 0.5) - 0.25) / max(blur * 0.25, 1e-4), -1.0, 1.0);
  float odd = 0.5 + 0.5 * side.x * side.y;
  vec3 base = mix(vec3(0.80, 0.83, 0.87), vec3(0.70, 0.74, 0.80), odd);
  vec3 light = base * base * (1.0 - 0.62 * (1.0 - lit(at)));
  float far = length(at.xy - focus.xy) / size, clear = exp(-far * far / 81.0);
  colour = vec4(sqrt(light) * clear, clear);
}`;
const DEPTH = `#version 300 es
precision highp float; void main() {}`;

// -- the scene on the graphics card ------------------------------------------------------------------------------------
async function unpack() {
  const text = element("data").textContent, bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function program(gl, vertex, fragment) {
  const out = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source); gl.compileShader(shader); gl.attachShader(out, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(out);
  const at = {};
  for (let i = 0; i < gl.getProgramParameter(out, gl.ACTIVE_UNIFORMS); i++) {
    const name = gl.getActiveUniform(out, i).name;
    at[name] = gl.getUniformLocation(out, name);
  }
  return { out, at };
}

function upload(gl, vertices, normals, faces) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, vertices, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, normals, gl.STATIC_DRAW);
  gl.enableVertexAttribArray(1); gl.vertexAttribPointer(1, 3, gl.BYTE, true, 4, 0);
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, faces, gl.STATIC_DRAW);
  gl.bindVertexArray(null);
  return { array, count: faces.length };
}

function shadowMap(gl) {
  const map = gl.createTexture(), frame = gl.createFramebuffer();
  gl.bindTexture(gl.TEXTURE_2D, map);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.DEPTH_COMPONENT24, 1024, 1024, 0, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, null);
  for (const [key, value] of [["MIN_FILTER", "LINEAR"], ["MAG_FILTER", "LINEAR"], ["WRAP_S", "CLAMP_TO_EDGE"],
    ["WRAP_T", "CLAMP_TO_EDGE"], ["COMPARE_MODE", "COMPARE_REF_TO_TEXTURE"]])
    gl.texParameteri(gl.TEXTURE_2D, gl["TEXTURE_" + key], gl[value]);
  gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, map, 0);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  return { map, frame };
}

// -- playing -----------------------------------------------------------------------------------------------------------
async function main() {
  const canvas = element("view"), gl = canvas.getContext("webgl2", { antialias: true });
  if (!gl) throw new Error("this page needs WebGL 2, which this browser does not offer");
  const header = JSON.parse(element("header").textContent), buffer = await unpack();
  const kinds = { f4: Float32Array, i2: Int16Array, i1: Int8Array, u4: Uint32Array };
  const view = ([kind, start, length]) => new kinds[kind](buffer, start, length);
  const [position, turn, focus] = [header.position, header.turn, header.focus].map(view);
  const parts = header.parts.map((p) => ({ ...p, ...upload(gl, view(p.vertices), view(p.normals), view(p.faces)) }));
  const arrow = header.arrow && upload(gl, ...["vertices", "normals", "faces"].map((k) => view(header.arrow[k])));
  const [force, first] = header.arrow ? [view(header.arrow.force), view(header.arrow.first)] : [null, null];
  const far = 60 * header.radius;
  const ground = upload(gl, new Float32Array([-far, -far, 0, far, -far, 0, far, far, 0, -far, far, 0]),
    new Int8Array(16), new Uint32Array([0, 1, 2, 0, 2, 3]));
  const solid = program(gl, VERTEX, SOLID), floor = program(gl, VERTEX, FLOOR), depth = program(gl, VERTEX, DEPTH);
  const shadow = shadowMap(gl), toLight = unit(header.light), reach = 1.6 * header.radius;
  const still = [1, 0, 0, 0], one = [1, 1, 1], start = () => ({ ...header.camera, pan: [0, 0, 0] });
  let camera = start(), time = 0, playing = true, last = null, speed = 1, stale = true;

  function moment() {  // the frame before now, and how far it is to the next
    const step = header.duration / (header.frames - 1), at = Math.min(time / step, header.frames - 1);
    const k = Math.min(Math.floor(at), header.frames - 2);
    return [k, at - k];
  }

  function between(array, n, row, rows, [k, s]) {
    const a = (k * rows + row) * n, b = a + rows * n, out = [];
    let along = 0;  // q and -q are the same turn: take the nearer
    for (let i = 0; i < n; i++) along += array[a + i] * array[b + i];
    const sign = n === 4 && along < 0 ? -1 : 1;
    for (let i = 0; i < n; i++) out.push((1 - s) * array[a + i] + s * sign * array[b + i]);
    return n === 4 ? unit(out) : out;
  }

  function things(now) {  // what is drawn: mesh, pose, scale, colour
    const poses = [];
    for (let b = 0; b < header.bodies; b++)
      poses.push(pose(between(position, 3, b, header.bodies, now), between(turn, 4, b, header.bodies, now)));
    // surfaces that coincide must not flicker: each of four neighbours in the list comes a little nearer
    const out = parts.map((p, k) => (
      { mesh: p, model: poses[p.pose], scale: one, paint: p.rgba, nearer: (k % 4) * 1.2e-5 }));
    if (arrow && element("forces").firstElementChild.checked)
      for (let i = first[now[0]]; i < first[now[0] + 1]; i++) {
        const f = [...force.subarray(6 * i + 3, 6 * i + 6)], length = Math.hypot(...f), z = unit(f);
        const turned = z[2] > -0.999 ? unit([1 + z[2], -z[1], z[0], 0]) : [0, 1, 0, 0];
        out.push({ mesh: arrow, model: pose([...force.subarray(6 * i, 6 * i + 3)], turned),
          scale: [header.radius, header.radius, length], paint: [0.86, 0.2, 0.2, 1], before: true });
      }
    return out.sort((a, b) => b.paint[3] - a.paint[3]);  // what is seen through comes last
  }

  function draw(shader, list, view) {
    gl.uniformMatrix4fv(shader.at.view, false, view);
    for (const { mesh, model, scale, paint, nearer, before } of list) {
      gl.depthRange(0, before && shader !== depth ? 0.01 : 1);  // arrows are seen through bodies
      gl.uniformMatrix4fv(shader.at.model, false, model);
      gl.uniform3fv(shader.at.scale, scale);
      gl.uniform1f(shader.at.nearer, nearer || 0);
      if (shader.at.paint) gl.uniform4fv(shader.at.paint, paint);
      gl.bindVertexArray(mesh.array);
      gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_INT, 0);
    }
    gl.depthRange(0, 1);
  }

  function paint() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const now = moment(), centre = between(focus, 3, 0, 1, now), list = things(now);
    const target = add(centre, camera.pan), back = [Math.cos(camera.up) * Math.cos(camera.around),
      Math.cos(camera.up) * Math.sin(camera.around), Math.sin(camera.up)];
    const eye = add(target, back, camera.distance * Math.max(1, height / width));
    const lens = perspective(header.angle, width / height, 0.02 * camera.distance, 50 * (header.radius + camera.distance));
    const view = times(lens, lookFrom(eye, back)), lamp = times(parallel(reach), lookFrom(centre, toLight));

    gl.bindFramebuffer(gl.FRAMEBUFFER, shadow.frame);
    gl.viewport(0, 0, 1024, 1024);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST); gl.enable(gl.CULL_FACE); gl.cullFace(gl.FRONT);
    gl.useProgram(depth.out);
    draw(depth, list, lamp);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.cullFace(gl.BACK); gl.enable(gl.BLEND); gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    for (const shader of [floor, solid]) {
      gl.useProgram(shader.out);
      gl.uniformMatrix4fv(shader.at.lamp, false, lamp);
      for (const [name, value] of [["toLight", toLight], ["eye", eye], ["focus", centre]])
        if (shader.at[name]) gl.uniform3fv(shader.at[name], value);
      for (const name of ["size", "tile"])
        if (shader.at[name]) gl.uniform1f(shader.at[name], name === "size" ? header.radius : header.tile);
      const under = pose([Math.round(centre[0]), Math.round(centre[1]), header.floor], still);
      draw(shader, shader === floor ? [{ mesh: ground, model: under, scale: one }] : list, view);
    }
    const horizon = 50 - 50 * Math.tan(camera.up) / Math.tan(header.angle / 2);
    document.body.style.setProperty("--horizon", `${Math.max(horizon, -100)}%`);
    element("scrub").value = time / header.duration;
    element("time").textContent = `${time.toFixed(2)} / ${header.duration.toFixed(2)} s`;
  }

  function tick(stamp) {
    if (playing && last !== null) time = (time + speed * (stamp - last) / 1000) % header.duration;
    last = stamp;
    if (playing || stale) paint();
    stale = false;
    requestAnimationFrame(tick);
  }

  function play(on) {
    playing = on;
    element("play").textContent = on ? "❚❚" : "▶";
    element("play").setAttribute("aria-label", on ? "pause" : "play");
  }

  function go(to) {
    play(false);
    time = Math.min(Math.max(to, 0), header.duration);
  }

  // whatever the user does, the next frame is painted
  for (const name of ["input", "change", "click", "dblclick", "keydown", "pointermove", "wheel", "resize"])
    addEventListener(name, () => { stale = true; }, { capture: true, passive: true });
  element("forces").hidden = !arrow;
  element("play").onclick = () => play(!playing);
  element("scrub").oninput = (event) => go(event.target.value * header.duration);
  element("speed").onchange = (event) => { speed = Number(event.target.value); };
  const keys = { " ": () => play(!playing), ArrowLeft: () => go(time - header.duration / (header.frames - 1)),
    ArrowRight: () => go(time + header.duration / (header.frames - 1)), r: () => { camera = start(); } };
  addEventListener("keydown", (event) => {
    if (keys[event.key] && event.target.tagName !== "SELECT") { event.preventDefault(); keys[event.key](); }
  });
  canvas.ondblclick = () => { camera = start(); };
  const pointers = new Map();
  canvas.onpointerdown = (event) => { pointers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = canvas.onpointercancel = (event) => pointers.delete(event.pointerId);
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.onpointermove = (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    const gap = () => { const [a, b] = pointers.values(); return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
    const was = pointers.size === 2 ? gap() : 0;
    pointers.set(event.pointerId, event);
    if (pointers.size === 2) camera.distance *= was / Math.max(gap(), 1);
    else if (event.shiftKey || event.buttons & 6) {
      const scale = camera.distance * Math.tan(header.angle / 2) * 2 / canvas.clientHeight;
      const right = [-Math.sin(camera.around), Math.cos(camera.around), 0];
      camera.pan = add(add(camera.pan, right, -dx * scale), [0, 0, 1], dy * scale);
    } else {
      camera.around -= dx * 0.008;
      camera.up = Math.min(Math.max(camera.up + dy * 0.008, -0.2), 1.55);
    }
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.distance *= Math.exp(0.001 * event.deltaY);
  }, { passive: false });
  requestAnimationFrame(tick);
}

main().catch((error) => {
  element("problem").hidden = false;
  element("problem").textContent = `This motion cannot be shown: ${error.message}.`;
});
