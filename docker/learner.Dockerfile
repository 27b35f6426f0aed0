# The workers: score, train, evaluate, release. With torch for training, on the CPU unless TRAIN_DEVICE says otherwise
# (compose.train-gpu.yaml); what the gates score themselves runs on the CPU.
FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/mentee

# torch brings what its build needs; the rest of the trainer follows the lock, and nothing of vLLM is installed here.
COPY requirements/gateway.txt requirements/cpu.txt requirements/
RUN pip install --no-cache-dir --no-deps -r requirements/gateway.txt \
    && pip install --no-cache-dir -c requirements/gateway.txt -c requirements/cpu.txt \
        torch transformers peft safetensors

COPY pyproject.toml ./
COPY app app
COPY bots bots
COPY learner learner
COPY migrations migrations
RUN pip install --no-cache-dir --no-deps -e . \
    && useradd --system --uid 10001 --home-dir /srv/mentee mentee \
    && install -d -o mentee -g mentee /var/lib/mentee

USER mentee
ENV MENTEE_HOME=/var/lib/mentee HF_HUB_OFFLINE=1
CMD ["python", "-m", "celery", "-A", "app.worker", "worker", "-Q", "score", "-c", "1", "--pool", "threads", "-n", "score@%h", "--without-gossip", "--without-mingle"]
