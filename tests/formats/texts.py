"""Parts of robot descriptions in URDF."""

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def urdf(*links, joints=""):
    return f'<robot name="r">{"".join(links)}{joints}</robot>'


def link(name, inner=""):
    return f'<link name="{name}">{INERTIAL}{inner}</link>'


def joint(name, parent, child, inner="", kind="revolute"):
    limit = '<limit lower="-1" upper="1" effort="5" velocity="3"/>'
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="0, 1, 0"/>{limit}{inner}</joint>'
