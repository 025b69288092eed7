"use strict";
// Draws a robot with WebGL 2, without libraries. What there is comes from two script elements of the page: `header`, JSON that
// says what lies where, and `data`, the arrays, compressed and in base64 (page.py). A motion is played; where Python moves
// the robot (header.live) poses come as events, and what the user does is posted (browser.py). A saved page asks nobody for
// anything.

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
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const floatsOf = (text) => new Float32Array(bytesOf(text).buffer);

async function unpack(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
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
  const arrays = [faces, edges(faces)].map((indices) => {
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, vertices, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, normals, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(1); gl.vertexAttribPointer(1, 3, gl.SHORT, true, 8, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    return { array, count: indices.length };
  });
  return { vertices, faces, solid: arrays[0], wires: arrays[1] };
}

function edges(faces) {
  const out = new Uint32Array(2 * faces.length);
  for (let i = 0; i < faces.length; i += 3)
    out.set([faces[i], faces[i + 1], faces[i + 1], faces[i + 2], faces[i + 2], faces[i]], 2 * i);
  return out;
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

async function load(gl, header, data) {  // what is drawn: meshes on the card, arrays of the motion
  const buffer = await unpack(data), known = new Map();
  const kinds = { f4: Float32Array, i2: Int16Array, u4: Uint32Array };
  const view = ([kind, start, length]) => new kinds[kind](buffer, start, length);
  const mesh = (m) => {
    const key = [m.vertices, m.normals, m.faces].join();
    if (!known.has(key)) known.set(key, upload(gl, view(m.vertices), view(m.normals), view(m.faces)));
    return known.get(key);
  };
  const part = (p) => ({ pose: p.pose, rgba: p.rgba, mesh: mesh(p) });
  return { ...header, position: view(header.position), turn: view(header.turn), focus: view(header.focus),
    rows: header.force && view(header.force.rows), first: header.force && view(header.force.first),
    looks: header.looks.map(part), shapes: header.shapes.map(part), arrow: mesh(header.arrow), ball: mesh(header.ball) };
}

// -- what the user can choose ------------------------------------------------------------------------------------------
const MADE = {  // one control of Python's panel each: what it looks like, and how its value is written and read
  heading: (about) => Object.assign(document.createElement("h2"), { textContent: about.label }),
  note: () => Object.assign(document.createElement("p"), { write(x) { this.textContent = x; } }),
  button: (about, send) => Object.assign(document.createElement("button"), { textContent: about.label, onclick: () => send(null) }),
  checkbox: (about, send) => labelled(about, "checkbox", (input) => {
    input.onchange = () => send(input.checked);
    return (x) => { input.checked = x; };
  }),
  slider: (about, send) => labelled(about, "range", (input, label) => {
    const shown = label.appendChild(document.createElement("output"));
    Object.assign(input, { min: about.min, max: about.max, step: about.step });
    input.oninput = () => { shown.value = Number(input.value).toFixed(2); send(Number(input.value)); };
    return (x) => { if (document.activeElement !== input || !input.matches(":active")) input.value = x; shown.value = x.toFixed(2); };
  }),
  choice: (about, send) => {
    const label = Object.assign(document.createElement("label"), { textContent: about.label });
    const select = label.appendChild(document.createElement("select"));
    for (const name of about.options) select.append(new Option(name));
    select.onchange = () => send(select.value);
    return Object.assign(label, { write: (x) => { select.value = x; } });
  },
  vector: (about, send) => {
    const label = Object.assign(document.createElement("fieldset"), { textContent: about.label });
    const inputs = ["x", "y", "z"].map((axis) => Object.assign(document.createElement("input"),
      { type: "number", step: about.step, ariaLabel: `${about.label} ${axis}` }));
    for (const input of inputs) input.onchange = () => send(inputs.map((i) => Number(i.value)));
    label.append(...inputs);
    return Object.assign(label, { write: (xs) => xs.forEach((x, i) => {
      if (document.activeElement !== inputs[i]) inputs[i].value = Number(x.toFixed(4));
    }) });
  },
};

function labelled(about, type, bind) {
  const label = Object.assign(document.createElement("label"), { textContent: about.label });
  const input = label.appendChild(Object.assign(document.createElement("input"), { type }));
  return Object.assign(label, { write: bind(input, label) });
}

const LAYERS = { forces: "contact forces", points: "contact points", shapes: "collision shapes", frames: "frames",
  masses: "centers of mass" };

function layersOf(scene) {  // a checkbox for all that can be shown beside the looks
  const boxes = {};
  for (const [name, label] of Object.entries(LAYERS)) {
    const made = MADE.checkbox({ label }, () => {});
    boxes[name] = made.querySelector("input");
    made.hidden = (name === "shapes" && !scene.shapes.length) || (["forces", "points"].includes(name) && !scene.rows);
    element("show").append(made);
  }
  boxes.forces.checked = !scene.live;
  return (name) => boxes[name].checked;
}

// -- where Python moves the robot -----------------------------------------------------------------------------------------
const posted = [];
let posting = false;

async function post(message) {  // in order, all that has gathered at a time
  if (message) posted.push(message);
  if (posting || !posted.length) return;
  posting = true;
  try { await fetch("act", { method: "POST", body: JSON.stringify(posted.splice(0)) }); } catch (error) { /* told by events */ }
  posting = false;
  post();
}

function listen(scene, controls, moved) {
  const events = new EventSource("events"), n = scene.bodies;
  events.onopen = () => { element("problem").hidden = true; };
  events.onerror = () => problem("The program that shows this has ended.");
  events.onmessage = (event) => {
    const { pose, force, values } = JSON.parse(event.data);
    if (pose) {
      const all = floatsOf(pose);
      [scene.focus, scene.position, scene.turn] = [all.subarray(0, 3), all.subarray(3, 3 + 3 * n), all.subarray(3 + 3 * n)];
      if (force !== undefined) { scene.rows = floatsOf(force); scene.first = [0, scene.rows.length / 6]; }
    }
    (values || []).forEach(([value, visible], k) => {
      controls[k].hidden = !visible;
      if (controls[k].write) controls[k].write(value);
    });
    moved();
  };
  addEventListener("pagehide", () => events.close());
}

function problem(text) {
  element("problem").hidden = false;
  element("problem").textContent = text;
}

// -- drawing ---------------------------------------------------------------------------------------------------------------
async function main() {
  const canvas = element("view"), gl = canvas.getContext("webgl2", { antialias: true });
  if (!gl) throw new Error("this page needs WebGL 2, which this browser does not offer");
  let scene = await load(gl, JSON.parse(element("header").textContent), element("data").textContent);
  const on = layersOf(scene), far = 60 * scene.radius;
  const ground = upload(gl, new Float32Array([-far, -far, 0, far, -far, 0, far, far, 0, -far, far, 0]),
    new Int16Array(16), new Uint32Array([0, 1, 2, 0, 2, 3]));
  const solid = program(gl, VERTEX, SOLID), floor = program(gl, VERTEX, FLOOR), depth = program(gl, VERTEX, DEPTH);
  const shadow = shadowMap(gl), toLight = unit(scene.light);
  const still = [1, 0, 0, 0], one = [1, 1, 1], start = () => ({ ...scene.camera, pan: [0, 0, 0] });
  const axes = [[[0.5, 0.5, 0.5, 0.5], [0.85, 0.15, 0.15, 1]], [[0.5, -0.5, -0.5, -0.5], [0.1, 0.6, 0.15, 1]],
    [still, [0.15, 0.3, 0.85, 1]]];  // turns that take z to x, to y, to z; colours
  let camera = start(), time = 0, playing = true, last = null, speed = 1, stale = true, seen = null;

  function moment() {  // the frame before now, and how far it is to the next
    if (scene.frames < 2) return [0, 0];
    const step = scene.duration / (scene.frames - 1), at = Math.min(time / step, scene.frames - 1);
    const k = Math.min(Math.floor(at), scene.frames - 2);
    return [k, at - k];
  }

  function between(array, n, row, rows, [k, s]) {
    const a = (k * rows + row) * n, b = s ? a + rows * n : a, out = [];
    let along = 0;  // q and -q are the same turn: take the nearer
    for (let i = 0; i < n; i++) along += array[a + i] * array[b + i];
    const sign = n === 4 && along < 0 ? -1 : 1;
    for (let i = 0; i < n; i++) out.push((1 - s) * array[a + i] + s * sign * array[b + i]);
    return n === 4 ? unit(out) : out;
  }

  function poses(now) {
    const out = [];
    for (let b = 0; b < scene.bodies; b++)
      out.push(pose(between(scene.position, 3, b, scene.bodies, now), between(scene.turn, 4, b, scene.bodies, now)));
    return out;
  }

  function things(now, placed) {  // what is drawn: mesh, pose, scale, colour
    const r = scene.radius, ball = (p, size, paint) =>
      ({ mesh: scene.ball, model: pose(p, still), scale: [size, size, size], paint, before: true });
    // surfaces that coincide must not flicker: each of four neighbours in the list comes a little nearer
    const out = scene.looks.map((p, k) => (
      { mesh: p.mesh, model: placed[p.pose], scale: one, paint: p.rgba, nearer: (k % 4) * 1.2e-5 }));
    if (on("shapes")) for (const p of scene.shapes)
      out.push({ mesh: p.mesh, model: placed[p.pose], scale: one, paint: [0.8, 0.25, 0.55, 1], wires: true });
    if (on("masses")) for (const [b, ...p] of scene.masses)
      out.push(ball([...times(placed[b], pose(p, still)).subarray(12, 15)], 0.035 * r, [0.1, 0.1, 0.12, 1]));
    if (on("frames")) for (const model of placed.slice(1)) for (const [turned, paint] of axes)
      out.push({ mesh: scene.arrow, model: times(model, pose([0, 0, 0], turned)), scale: [0.5 * r, 0.5 * r, 0.25 * r], paint, before: true });
    for (let i = scene.rows ? scene.first[now[0]] : 0; scene.rows && i < scene.first[now[0] + 1]; i++) {
      const at = [...scene.rows.subarray(6 * i, 6 * i + 3)], f = [...scene.rows.subarray(6 * i + 3, 6 * i + 6)];
      const length = Math.hypot(...f);
      if (on("points")) out.push(ball(at, 0.02 * r, [0.1, 0.55, 0.2, 1]));
      if (!on("forces") || length < 0.01 * r) continue;
      const z = unit(f), turned = z[2] > -0.999 ? unit([1 + z[2], -z[1], z[0], 0]) : [0, 1, 0, 0];
      out.push({ mesh: scene.arrow, model: pose(at, turned), scale: [r, r, length], paint: [0.86, 0.2, 0.2, 1], before: true });
    }
    return out.sort((a, b) => b.paint[3] - a.paint[3]);  // what is seen through comes last
  }

  function draw(shader, list, view) {
    gl.uniformMatrix4fv(shader.at.view, false, view);
    for (const { mesh, model, scale, paint, nearer, before, wires } of list) {
      if (wires && shader === depth) continue;
      gl.depthRange(0, before && shader !== depth ? 0.01 : 1);  // arrows are seen through bodies
      gl.uniformMatrix4fv(shader.at.model, false, model);
      gl.uniform3fv(shader.at.scale, scale);
      gl.uniform1f(shader.at.nearer, wires ? 6e-5 : nearer || 0);
      if (shader.at.paint) gl.uniform4fv(shader.at.paint, paint);
      const { array, count } = wires ? mesh.wires : mesh.solid;
      gl.bindVertexArray(array);
      gl.drawElements(wires ? gl.LINES : gl.TRIANGLES, count, gl.UNSIGNED_INT, 0);
    }
    gl.depthRange(0, 1);
  }

  function paint() {
    const ratio = Math.min(devicePixelRatio || 1, 2), reach = 1.6 * scene.radius;
    const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const now = moment(), placed = poses(now), centre = between(scene.focus, 3, 0, 1, now), list = things(now, placed);
    const target = add(centre, camera.pan), back = [Math.cos(camera.up) * Math.cos(camera.around),
      Math.cos(camera.up) * Math.sin(camera.around), Math.sin(camera.up)];
    const eye = add(target, back, camera.distance * Math.max(1, height / width));
    const lens = perspective(scene.angle, width / height, 0.02 * camera.distance, 50 * (scene.radius + camera.distance));
    const from = lookFrom(eye, back), view = times(lens, from), lamp = times(parallel(reach), lookFrom(centre, toLight));
    seen = { eye, back, placed, right: [from[0], from[4], from[8]], up: [from[1], from[5], from[9]] };

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
        if (shader.at[name]) gl.uniform1f(shader.at[name], name === "size" ? scene.radius : scene.tile);
      const under = pose([Math.round(centre[0]), Math.round(centre[1]), scene.floor], still);
      draw(shader, shader === floor ? [{ mesh: ground, model: under, scale: one }] : list, view);
    }
    const horizon = 50 - 50 * Math.tan(camera.up) / Math.tan(scene.angle / 2);
    document.body.style.setProperty("--horizon", `${Math.max(horizon, -100)}%`);
    element("scrub").value = time / scene.duration;
    element("time").textContent = `${time.toFixed(2)} / ${scene.duration.toFixed(2)} s`;
  }

  function tick(stamp) {
    const plays = playing && scene.frames > 1;
    if (plays && last !== null) time = (time + speed * (stamp - last) / 1000) % scene.duration;
    last = stamp;
    if (plays || stale) paint();
    stale = false;
    requestAnimationFrame(tick);
  }

  function play(wanted) {
    playing = wanted;
    element("play").textContent = wanted ? "❚❚" : "▶";
    element("play").setAttribute("aria-label", wanted ? "pause" : "play");
  }

  function go(to) {
    play(false);
    time = Math.min(Math.max(to, 0), scene.duration);
  }

  // -- the mouse on a body, where Python moves the robot
  function ray(event) {  // the direction that the mouse points along
    const box = canvas.getBoundingClientRect(), height = 2 * Math.tan(scene.angle / 2) / box.height;
    const x = (event.clientX - box.left - box.width / 2) * height, y = (box.top + box.height / 2 - event.clientY) * height;
    return add(add(seen.right.map((a) => x * a), seen.up, y), seen.back, -1);
  }

  function hit(event) {  // the nearest body under the mouse, and where it is met
    const along = ray(event), found = { distance: Infinity };
    for (const { mesh, pose: b } of scene.looks) {
      if (b === 0) continue;
      const m = seen.placed[b], local = (v) => [0, 4, 8].map((i) => dot(m.subarray(i, i + 3), v));
      const from = local(add(seen.eye, m.subarray(12, 15), -1)), d = local(along);
      const { vertices: p, faces } = mesh, corner = (i) => p.subarray(3 * faces[i], 3 * faces[i] + 3);
      for (let i = 0; i < faces.length; i += 3) {
        const a = [...corner(i)], s = add([...corner(i + 1)], a, -1), t = add([...corner(i + 2)], a, -1), n = cross(d, t);
        const size = dot(s, n), o = add(from, a, -1), u = dot(o, n) / size, c = cross(o, s), v = dot(d, c) / size;
        const distance = dot(t, c) / size;
        if (u >= 0 && v >= 0 && u + v <= 1 && distance > 0 && distance < found.distance) Object.assign(found, { distance, body: b - 1 });
      }
    }
    return found.body === undefined ? null : { body: found.body, place: add(seen.eye, along, found.distance) };
  }

  function drag(held, event) {  // in the plane through where it was taken, seen from the front
    const along = ray(event), distance = dot(add(held.place, seen.eye, -1), seen.back) / dot(along, seen.back);
    post({ drag: { ...held, target: add(seen.eye, along, distance) } });
  }

  // whatever the user does, the next frame is painted
  const repaint = () => { stale = true; };
  for (const name of ["input", "change", "click", "dblclick", "keydown", "pointermove", "wheel", "resize"])
    addEventListener(name, repaint, { capture: true, passive: true });
  if (scene.live) {
    const controls = scene.panel.map((about, k) => MADE[about.kind](about, (value) => post({ control: k, value })));
    element("controls").append(...controls);
    element("bar").hidden = true;
    listen(scene, controls, repaint);
  }
  element("robot").hidden = !(scene.robots > 1);
  element("robot").lastElementChild.max = scene.robots - 1;
  element("robot").lastElementChild.onchange = async (event) => {
    const answer = await fetch(`robot/${event.target.value}`);
    if (!answer.ok) return problem(await answer.text());
    const { header, data } = await answer.json();
    scene = await load(gl, { ...scene, ...header }, data);
    element("problem").hidden = true;
    repaint();
  };
  element("play").onclick = () => play(!playing);
  element("scrub").oninput = (event) => go(event.target.value * scene.duration);
  element("speed").onchange = (event) => { speed = Number(event.target.value); };
  const keys = { " ": () => play(!playing), ArrowLeft: () => go(time - scene.duration / (scene.frames - 1)),
    ArrowRight: () => go(time + scene.duration / (scene.frames - 1)), r: () => { camera = start(); } };
  addEventListener("keydown", (event) => {
    const taken = element("side").contains(event.target) || event.target.tagName === "SELECT";
    if (keys[event.key] && !taken && !scene.live) { event.preventDefault(); keys[event.key](); }
  });
  canvas.ondblclick = () => { camera = start(); };
  const pointers = new Map();
  let held = null;
  canvas.onpointerdown = (event) => {
    pointers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
    if (scene.live && event.button === 0 && !event.shiftKey) held = hit(event);
    if (held) drag(held, event);
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    pointers.delete(event.pointerId);
    if (held) post({ drag: { body: null } });
    held = null;
  };
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.onpointermove = (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    const gap = () => { const [a, b] = pointers.values(); return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
    const was = pointers.size === 2 ? gap() : 0;
    pointers.set(event.pointerId, event);
    if (held) drag(held, event);
    else if (pointers.size === 2) camera.distance *= was / Math.max(gap(), 1);
    else if (event.shiftKey || event.buttons & 6) {
      const scale = camera.distance * Math.tan(scene.angle / 2) * 2 / canvas.clientHeight;
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

main().catch((error) => problem(`This motion cannot be shown: ${error.message}.`));
