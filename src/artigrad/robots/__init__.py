from ..io.builder import ModelBuilder
import numpy as np
def quadruped():
    b = ModelBuilder("quadruped")
    box=lambda m,x,y,z:(m/12*(y*y+z*z),m/12*(x*x+z*z),m/12*(x*x+y*y))
    b.body("trunk",joint="free",mass=6.9,com=(0.01,0.002,0),inertia=box(6.9,.38,.19,.11),position=(0,0,.4))
    for n,sx,sy in (("fl",1,1),("fr",1,-1),("rl",-1,1),("rr",-1,-1)):
        b.body(n+"_hip","trunk",joint="revolute",axis=(1,0,0),position=(.19*sx,.047*sy,0),mass=.68,com=(-.005*sx,.01*sy,0),inertia=box(.68,.1,.08,.08))
        b.body(n+"_thigh",n+"_hip",joint="revolute",axis=(0,1,0),position=(0,.095*sy,0),mass=1.15,com=(-.003,-.02*sy,-.04),inertia=box(1.15,.04,.04,.213))
        b.body(n+"_shank",n+"_thigh",joint="revolute",axis=(0,1,0),position=(0,0,-.213),mass=.24,com=(.005,0,-.12),inertia=box(.24,.03,.03,.213))
        b.site(n+"_foot",n+"_shank",position=(0,0,-.213))
        for j in ("hip","thigh","shank"): b.motor(n+"_"+j,n+"_"+j)
    return b.build()
