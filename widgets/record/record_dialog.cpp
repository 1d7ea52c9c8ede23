#include "widgets/record/record_dialog.h"

#include <algorithm>

#include <QComboBox>
#include <QDialogButtonBox>
#include <QEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpressionValidator>
#include <QScreen>
#include <QScrollArea>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QStyle>
#include <QVBoxLayout>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int parametersRole = Qt::UserRole + 1; // "f=2:join=doubling"
constexpr int titleRole = Qt::UserRole + 2;
constexpr int whyNotRole = Qt::UserRole + 3;

// A group of labelled fields under a heading, two fields a row.
class FieldGrid {
public:
    FieldGrid(QWidget* parent, QVBoxLayout* into, const QString& title)
    {
        into->addWidget(makeLabel(title, "title", parent));
        m_grid = new QGridLayout;
        m_grid->setHorizontalSpacing(10);
        m_grid->setVerticalSpacing(5);
        m_grid->setColumnStretch(1, 1);
        m_grid->setColumnStretch(3, 1);
        m_grid->setColumnMinimumWidth(0, 98);
        m_grid->setColumnMinimumWidth(2, 96);
        into->addLayout(m_grid);
        into->addSpacing(6);
        m_parent = parent;
    }
    void add(const QString& label, QWidget* field, bool wide = false)
    {
        auto* name = makeLabel(label, "secondary", m_parent);
        name->setBuddy(field);
        name->setToolTip(field->toolTip());
        field->setAccessibleName(label);
        field->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // the columns are of one width, in every group
        if (wide && m_column != 0) newRow();
        m_grid->addWidget(name, m_row, m_column);
        m_grid->addWidget(field, m_row, m_column + 1, 1, wide ? 3 : 1);
        m_column += 2;
        if (wide || m_column >= 4) newRow();
    }

private:
    void newRow()
    {
        m_column = 0;
        ++m_row;
    }
    QGridLayout* m_grid;
    QWidget* m_parent;
    int m_row = 0;
    int m_column = 0;
};

// Fields that are whole where there is room, else they scroll: so rows of the list above stay seen, and no field lies
// over another where text is large.
class FieldScroll : public QScrollArea {
public:
    explicit FieldScroll(QWidget* parent) : QScrollArea(parent)
    {
        setObjectName(u"recordFields"_s);
        setFrameShape(QFrame::NoFrame);
        setWidgetResizable(true);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setFocusPolicy(Qt::NoFocus); // its fields have it, and are scrolled to
        setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
        viewport()->setAutoFillBackground(false);
        auto* inner = new QWidget(this);
        inner->setAutoFillBackground(false);
        m_column = new QVBoxLayout(inner);
        m_column->setContentsMargins(0, 0, 0, 0);
        m_column->setSpacing(8);
        setWidget(inner);
        inner->setAutoFillBackground(false); // setWidget() turns it on
    }
    QVBoxLayout* column() { return m_column; }
    QSize sizeHint() const override { return widget()->sizeHint(); }
    QSize minimumSizeHint() const override { return {widget()->minimumSizeHint().width(), 96}; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        if (watched == widget() && event->type() == QEvent::LayoutRequest) updateGeometry(); // groups come and go
        return QScrollArea::eventFilter(watched, event);
    }

private:
    QVBoxLayout* m_column;
};

constexpr int fewestRows = 4; // of the schedules, always seen

QString tooltipOf(const ScheduleInfo& info)
{
    return words(info.title) + u'\n' + words(info.summary) + u'\n' + words(info.constraints);
}

} // namespace

RecordDialog::RecordDialog(QWidget* parent) : QDialog(parent)
{
    setWindowTitle(u"Record a training run"_s);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(20, 14, 20, 12);
    layout->setSpacing(8);
    auto* columns = new QHBoxLayout;
    columns->setSpacing(24);
    layout->addLayout(columns, 1);

    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    columns->addLayout(left, 4);
    left->addWidget(makeLabel(u"Schedules"_s, "title", this));
    m_schedules = new QListWidget(this);
    // a long title ends in dots; its tooltip has it all
    m_schedules->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_schedules->setObjectName(u"boxed"_s);
    m_schedules->setAccessibleName(u"Schedules"_s);
    m_schedules->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored); // it takes what the fields leave
    fillSchedules();
    m_schedules->ensurePolished();
    m_schedules->setMinimumSize(280, fewestRows * std::max(24, m_schedules->sizeHintForRow(0)) + 12);
    left->addWidget(m_schedules, 1);
    m_parameters = line("parameters", u"its parameters"_s, {});
    m_parameters->setAccessibleName(u"Parameters of the schedule"_s);
    connect(m_parameters, &QLineEdit::textEdited, this, [this](const QString& text) {
        if (QListWidgetItem* item = m_schedules->currentItem()) item->setData(parametersRole, text.trimmed());
        check();
    });
    left->addWidget(m_parameters);
    left->addWidget(makeLabel(u"Or your own schedule"_s, "secondary", this));
    auto* fileRow = new QHBoxLayout;
    m_scheduleFile = line("scheduleFile", u"schedule.csv"_s,
                          u"A schedule CSV: one line per rank, one cell per op. Empty: the schedules ticked above."_s);
    m_scheduleFile->setAccessibleName(u"Schedule file"_s);
    auto* browse = new QPushButton(u"Choose…"_s, this);
    browse->setAutoDefault(false);
    connect(browse, &QPushButton::clicked, this, [this] {
        const QString path =
            QFileDialog::getOpenFileName(this, u"Choose a schedule"_s, {}, u"Schedule CSV (*.csv);;All files (*)"_s);
        if (!path.isEmpty()) m_scheduleFile->setText(path);
    });
    fileRow->addWidget(m_scheduleFile, 1);
    fileRow->addWidget(browse);
    left->addLayout(fileRow);
    left->addSpacing(4);
    auto* fields = new FieldScroll(this);
    left->addWidget(fields);
    addPlace(fields->column());
    FieldGrid replicas(this, fields->column(), u"Replicas"_s);
    auto* replicaCount =
        number("replicas", 1, 64, u"Pipelines side by side that train one model, each on its share of the batch."_s);
    m_shard = choice("shard",
                     {{u"nothing"_s, "none"},
                      {u"optimizer state (ZeRO 1)"_s, "optimizer"},
                      {u"and gradients (ZeRO 2)"_s, "gradients"},
                      {u"and weights (ZeRO 3)"_s, "weights"}},
                     u"What replicas share instead of each having all of it."_s);
    m_owners = line("owners", u"even"_s,
                    u"Who owns which piece: layer for whole layers, or a share for each replica, such as 3/5,2/5. "
                    "Empty: equal pieces."_s);
    m_gather = choice("gather",
                      {{u"once a batch"_s, ""},
                       {u"the next one ahead"_s, "batch:prefetch=1"},
                       {u"for each microbatch"_s, "microbatch"}},
                      u"When sharded weights are gathered for an op."_s);
    m_reduce = choice(
        "reduce",
        {{u"at the end"_s, ""},
         {u"stage by stage"_s, "overlapped"},
         {u"each microbatch"_s, "microbatch"},
         {u"stage by stage, then update"_s, "stepped"}},
        u"When gradients are summed over the replicas: at the end of the batch, when a stage has its last gradient, "
        "or after each microbatch. \"Then update\" starts a stage's optimizer as soon as its sums have arrived."_s);
    m_replicaBatch = line("replica_batch", u"alike"_s, u"Microbatches of each replica, such as 3,5."_s);
    m_cut = line("cut", u"all layers"_s,
                 u"Partial backward: the layer that each replica goes back to, one of them 0, such as 0,4. A layer's "
                 "gradient is then the mean over the replicas that reach it, and the distance from synchronous "
                 "training is measured beside the run."_s);
    replicas.add(u"Replicas"_s, replicaCount);
    replicas.add(u"Their batches"_s, m_replicaBatch);
    replicas.add(u"Shard"_s, m_shard, true);
    replicas.add(u"Gather"_s, m_gather, true);
    replicas.add(u"Reduce"_s, m_reduce, true);
    replicas.add(u"Owners"_s, m_owners);
    replicas.add(u"Back to layer"_s, m_cut);

    auto* settings = new FieldScroll(this);
    columns->addWidget(settings, 5);
    QVBoxLayout* right = settings->column();
    FieldGrid shape(this, right, u"Shape"_s);
    m_ranks = number("ranks", 1, 64, u"Each rank trains a part of the model, as a device of the pipeline would."_s);
    m_microbatches =
        number("microbatches", 1, 4096, u"Parts of a batch that pass through the pipeline one after another."_s);
    m_chunks = number("chunks", 0, 16, u"Stages per rank. Schedules with a fixed number ignore it."_s);
    m_chunks->setSpecialValueText(u"schedule default"_s);
    shape.add(u"Ranks"_s, m_ranks);
    shape.add(u"Microbatches"_s, m_microbatches);
    shape.add(u"Stages per rank"_s, m_chunks);
    auto* microbatchSize = number("microbatch_size", 1, 256, u"Sequences in one microbatch."_s);
    shape.add(u"Microbatch size"_s, microbatchSize);

    FieldGrid model(this, right, u"Model"_s);
    m_layers = number("layers", 1, 512, u"Transformer blocks, split over the stages by cost."_s);
    m_hidden = number("hidden", 8, 8192, u"Width of the model."_s);
    m_heads = number("heads", 1, 128, u"Attention heads; hidden must be a multiple of it."_s);
    m_sequence = number("sequence", 2, 8192, u"Tokens per sequence; each byte is a token."_s);
    model.add(u"Layers"_s, m_layers);
    model.add(u"Hidden"_s, m_hidden);
    model.add(u"Heads"_s, m_heads);
    model.add(u"Sequence"_s, m_sequence);

    FieldGrid device(this, right, u"Device"_s);
    m_backend = choice("backend", {{u"processor"_s, ""}}, u"Device that the ranks compute on."_s);
    m_devices =
        line("device", u"all"_s, u"GPUs by number, as listed by stagewright devices; ranks use them in turn."_s);
    m_precision =
        choice("precision", {{u"automatic"_s, ""}, {u"bf16"_s, "bf16"}, {u"tf32"_s, "tf32"}, {u"fp32"_s, "fp32"}},
               u"For activations and products. Automatic: bf16 on GPUs, fp32 on the processor, where bf16 needs "
               "oneDNN and tf32 is not available. Master weights, gradients and sums are always fp32."_s);
    m_sharing = choice("sharing",
                       {{u"automatic"_s, ""},
                        {u"queues"_s, "queues"},
                        {u"partitions"_s, "partitions"},
                        {u"serialised"_s, "serialised"}},
                       u"How ranks share a GPU."_s);
    m_transport = choice("transport", {{u"copies"_s, ""}, {u"NCCL"_s, "nccl"}},
                         u"How GPUs exchange messages: driver copies, or NCCL where each rank has its own GPU."_s);
    device.add(u"Train on"_s, m_backend);
    device.add(u"GPUs"_s, m_devices);
    device.add(u"Precision"_s, m_precision);
    device.add(u"Sharing"_s, m_sharing);
    device.add(u"Messages"_s, m_transport);
    m_sharingMeaning = makeLabel({}, "faint", this);
    m_sharingMeaning->setObjectName(u"sharingMeaning"_s);
    m_sharingMeaning->setWordWrap(true);
    right->insertWidget(right->count() - 1, m_sharingMeaning); // above the room that ends the group

    FieldGrid run(this, right, u"Run"_s);
    auto* steps = number("steps", 1, 100000, u"Measured steps of each schedule."_s);
    auto* warmup = number("warmup", 0, 1000, u"Steps before them that figures exclude."_s);
    m_clock = choice("clock",
                     {{u"automatic"_s, "auto"},
                      {u"wall: real threads, real waits"_s, "wall"},
                      {u"virtual: projected for as many devices"_s, "virtual"}},
                     u"Wall is valid while there are no more ranks than idle cores. Virtual really runs every op, "
                     "then places it by its dependencies and CPU time. On GPUs the sharing mode decides."_s);
    auto* seed = line("seed", u"1"_s, u"Same seed: same weights, same data, same losses."_s);
    seed->setValidator(new QRegularExpressionValidator(QRegularExpression(u"[0-9]{1,18}"_s), seed));
    m_dataFile =
        line("data", u"built-in text"_s, u"Any text file of at least 1,024 bytes. Empty: the built-in text."_s);
    run.add(u"Steps"_s, steps);
    run.add(u"Warm-up"_s, warmup);
    run.add(u"Clock"_s, m_clock, true);
    run.add(u"Seed"_s, seed);
    run.add(u"Text file"_s, m_dataFile, true);
    m_target = new QComboBox(this);
    m_target->setObjectName(u"target"_s);
    m_target->setToolTip(u"Runs are recorded into a separate file and added here when done."_s);
    run.add(u"Add runs to"_s, m_target, true);
    addConditions(right);
    right->addStretch(1);

    layout->addSpacing(4);
    m_words = makeLabel({}, "value", this);
    m_words->setWordWrap(true);
    layout->addWidget(m_words);
    m_command = makeLabel({}, "code", this, true);
    m_command->setWordWrap(true);
    layout->addWidget(m_command);
    auto* bottom = new QHBoxLayout;
    m_fault = makeLabel({}, "worse", this);
    m_fault->setObjectName(u"fault"_s);
    m_fault->setWordWrap(true);
    bottom->addWidget(m_fault, 1);
    auto* cancel = new QPushButton(u"Cancel"_s, this);
    cancel->setAutoDefault(false);
    m_start = new QPushButton(u"Record"_s, this);
    m_start->setObjectName(u"primary"_s);
    m_start->setDefault(true);
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_start, &QPushButton::clicked, this, &QDialog::accept);
    bottom->addWidget(cancel);
    bottom->addWidget(m_start);
    layout->addLayout(bottom);

    connect(m_schedules, &QListWidget::itemChanged, this, &RecordDialog::check);
    connect(m_schedules, &QListWidget::currentItemChanged, this, &RecordDialog::showParameters);
    for (QSpinBox* box : {m_ranks, m_microbatches, m_chunks})
        connect(box, &QSpinBox::valueChanged, this, &RecordDialog::markPossible);
    connect(m_target, &QComboBox::currentIndexChanged, this, &RecordDialog::check);
    setSetup(usualRecording());
    markPossible();
    resize(900, 600);
}

// What a run is trained under: recording one again shows what it had.
void RecordDialog::addConditions(QVBoxLayout* into)
{
    FieldGrid conditions(this, into, u"Conditions"_s);
    const auto add = [&](const QString& label, QWidget* field, bool wide = false) {
        conditions.add(label, field, wide);
        m_conditions.push_back(field);
    };
    add(u"Disturbance"_s,
        line("perturb", u"none"_s,
             u"On purpose: rank=2:1.5 slows a rank, link=1-2:1.0 a link, launch=3:0.2 delays each op of a rank (in "
             "forwards), jitter=0.05 varies every op, transient=2@3:4 slows a rank in step 3. Several: with commas."_s),
        true);
    add(u"Link"_s,
        line("link", u"none"_s,
             u"Emulated links: latency between ranks and, after a comma, bandwidth, such as 50us,10GB/s."_s));
    add(u"Cluster"_s, line("cluster", u"none"_s,
                           u"Emulated links of a cluster instead, a device for each rank: 16@a100, or a file of "
                           u"'choose', 'devices --json' or "
                           "'hosts test --json'."_s));
    add(u"Memory cap"_s,
        line("memory_limit", u"none"_s,
             u"Activations a rank may hold: 4, 64MB, or 60% of holding every microbatch. An order that needs more is "
             "refused."_s));
    add(u"Sends"_s, choice("sends", {{u"buffered"_s, "buffered"}, {u"rendezvous"_s, "rendezvous"}},
                           u"Buffered: a send never waits. Rendezvous: it waits for its receive."_s));
    add(u"Receives"_s,
        choice("receives", {{u"by the rule"_s, ""}, {u"blocking"_s, "blocking"}, {u"posted"_s, "posted"}},
               u"Under rendezvous: the rank waits at a receive, or the op that needs the message waits."_s));
    add(u"Insert messages"_s,
        line("lower", u"no rule"_s,
             u"Rule that inserts sends and receives: just-in-time, pytorch, eager-post:2, rank-parity, grouped, "
             "batched."_s));
    add(u"Channels"_s,
        line("channels", u"shared"_s,
             u"Messages in flight at once from one rank to another: a number; shared: any number, which share a "
             "link's bandwidth; 0: any number, each with all of it; one: one after the other."_s));
    add(u"Layers by stage"_s,
        line("stage_layers", u"balanced"_s, u"Layers of each stage, such as 4,4,3,1. Empty: balanced by cost."_s));
    add(u"Speeds"_s, line("speed", u"all 1"_s,
                          u"Speed of each replica, or of each rank, such as 1,0.5; 0.5 takes twice as long."_s));
}

void RecordDialog::addPlace(QVBoxLayout* into)
{
    FieldGrid place(this, into, u"Where"_s);
    m_host = choice("host", {{u"this computer"_s, ""}},
                    u"This computer, or a host from Preferences › Hosts. A recording elsewhere goes on when this "
                    "window or the connection ends; its steps arrive here while it runs."_s);
    auto* engine =
        choice("engine", {{u"Stagewright"_s, "own"}, {u"PyTorch"_s, "torch"}},
               u"What trains: Stagewright's own engine, or PyTorch's pipelining (2.6 or newer), whose traces "
               "become the run."_s);
    m_ranksAs = choice("processes", {{u"threads"_s, "no"}, {u"processes (MPI)"_s, "yes"}},
                       u"Threads of one process, or processes that Open MPI starts: the same losses, with the "
                       "messages of a real job."_s);
    m_queue = choice("queue", {{u"at once"_s, ""}, {u"in Slurm's queue"_s, "slurm"}},
                     u"At once, or as a batch job that Slurm starts when it has room."_s);
    m_slurm =
        line("slurm", u"nodes=1"_s,
             u"Long options of sbatch, separated by spaces: nodes=2 gpus-per-node=8 partition=NAME time=1:00:00"_s);
    m_python = line("python", u"the one found there"_s,
                    u"A Python interpreter with PyTorch, where it runs. Empty: that of the active environment, "
                    "otherwise python3 on PATH; stagewright devices lists them."_s);
    m_modelFile = line("model_file", u"the model beside"_s,
                       u"Your own PyTorch model, FILE:FUNCTION: a Python file and its function that gives modules, "
                       "example and loss, as docs/examples/pytorch/decoder.py does."_s);
    place.add(u"Run on"_s, m_host, true);
    place.add(u"Engine"_s, engine, true);
    place.add(u"Python"_s, m_python, true);
    place.add(u"Your model"_s, m_modelFile, true);
    place.add(u"Ranks as"_s, m_ranksAs, true);
    place.add(u"Start"_s, m_queue, true);
    place.add(u"Slurm options"_s, m_slurm, true);
}

void RecordDialog::fillSchedules()
{
    for (const ScheduleInfo& info : allSchedules()) {
        auto* item = new QListWidgetItem(words(info.title), m_schedules);
        item->setData(Qt::UserRole, words(info.name));
        item->setData(titleRole, words(info.title));
        item->setToolTip(tooltipOf(info));
        item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable);
        item->setCheckState(Qt::Unchecked);
    }
}

void RecordDialog::showParameters()
{
    const QListWidgetItem* item = m_schedules->currentItem();
    const auto info = item != nullptr ? findSchedule(item->data(Qt::UserRole).toString().toStdString())
                                      : Result<const ScheduleInfo*>(nullptr);
    const bool any = item != nullptr && info && !(*info)->parameters.empty();
    m_parameters->setEnabled(any);
    m_parameters->setText(any ? item->data(parametersRole).toString() : QString());
    QStringList defaults, meanings;
    if (any) {
        for (const ScheduleParameter& parameter : (*info)->parameters) {
            defaults << words(parameter.name) + u'=' + words(parameter.fallback);
            meanings << u"%1 (%2): %3"_s.arg(words(parameter.name), words(parameter.values), words(parameter.meaning));
        }
    }
    m_parameters->setPlaceholderText(item == nullptr ? u"its parameters"_s
                                     : any           ? defaults.join(u':')
                                                     : u"it has no parameters"_s);
    m_parameters->setToolTip(any ? u"Parameters of %1, separated by colons; empty: the defaults.\n%2"_s.arg(
                                       item->data(titleRole).toString(), meanings.join(u'\n'))
                                 : QString());
}

// Computed off the GUI thread: searched schedules are slow. A late answer is dropped.
void RecordDialog::markPossible()
{
    const Shape shape{m_ranks->value(), m_microbatches->value(), m_chunks->value()};
    m_checking.drop();
    constexpr int mostTried = 4096; // ranks × microbatches; larger shapes are tried when they are chosen
    if (shape.ranks * shape.microbatches > mostTried) return;
    m_checking.start(
        [shape] {
            QStringList faults;
            for (const ScheduleInfo& info : allSchedules()) {
                const auto made = makeSchedule(info.name, shape);
                faults << (made ? QString()
                                : QString::fromStdString(made.error().message + (made.error().remedy.empty()
                                                                                     ? ""
                                                                                     : "; " + made.error().remedy)));
            }
            return faults;
        },
        [this](const QStringList& faults) {
            const QSignalBlocker quiet(m_schedules);
            for (int i = 0; i < std::min<int>(m_schedules->count(), static_cast<int>(faults.size())); ++i) {
                QListWidgetItem* item = m_schedules->item(i);
                const bool possible = faults[i].isEmpty();
                item->setData(whyNotRole, faults[i]);
                // A ticked schedule stays enabled, so that it can be unticked.
                const bool usable = possible || item->checkState() == Qt::Checked;
                item->setFlags(usable ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable
                                      : Qt::ItemIsSelectable);
                const auto info = findSchedule(item->data(Qt::UserRole).toString().toStdString());
                if (info) item->setToolTip(possible ? tooltipOf(**info) : u"Not for this shape: %1"_s.arg(faults[i]));
            }
        });
}

QSpinBox* RecordDialog::number(const char* name, int low, int high, const QString& tooltip)
{
    auto* box = new QSpinBox(this);
    box->setObjectName(QString::fromLatin1(name));
    box->setRange(low, high);
    box->setToolTip(tooltip);
    connect(box, &QSpinBox::valueChanged, this, &RecordDialog::check);
    return box;
}

QComboBox* RecordDialog::choice(const char* name, std::initializer_list<std::pair<QString, const char*>> items,
                                const QString& tooltip)
{
    auto* box = new QComboBox(this);
    box->setObjectName(QString::fromLatin1(name));
    for (const auto& [text, value] : items) box->addItem(text, QString::fromLatin1(value));
    box->setToolTip(tooltip);
    connect(box, &QComboBox::currentIndexChanged, this, &RecordDialog::check);
    return box;
}

QLineEdit* RecordDialog::line(const char* name, const QString& placeholder, const QString& tooltip)
{
    auto* edit = new QLineEdit(this);
    edit->setObjectName(QString::fromLatin1(name));
    edit->setPlaceholderText(placeholder);
    edit->setToolTip(tooltip);
    connect(edit, &QLineEdit::textChanged, this, &RecordDialog::check);
    return edit;
}

void RecordDialog::setSetup(const Setup& setup)
{
    m_shown = setup;
    QString file;
    for (const std::string& name : setup.schedules)
        if (namesFile(name)) file = words(name);
    for (int i = 0; i < m_schedules->count(); ++i) {
        QListWidgetItem* item = m_schedules->item(i);
        const std::string name = item->data(Qt::UserRole).toString().toStdString();
        const auto given = std::find_if(setup.schedules.begin(), setup.schedules.end(),
                                        [&](const std::string& one) { return keyValueOf(one, ':').key == name; });
        const bool ticked = given != setup.schedules.end();
        item->setCheckState(ticked ? Qt::Checked : Qt::Unchecked);
        item->setData(parametersRole, ticked ? words(*given).section(u':', 1) : QString());
        if (ticked && given == setup.schedules.begin()) m_schedules->setCurrentItem(item);
    }
    m_schedules->scrollToTop(); // the first row is seen; if the chosen one is below, it is too
    if (m_schedules->currentItem() != nullptr && m_schedules->currentRow() >= 8)
        m_schedules->scrollToItem(m_schedules->currentItem());
    showParameters();
    m_scheduleFile->setText(file);
    for (const SetupKey& key : setupKeys()) {
        QWidget* field = findChild<QWidget*>(words(key.name()));
        const QString text = words(textOf(setup, key));
        if (auto* box = qobject_cast<QSpinBox*>(field)) box->setValue(text.toInt());
        if (auto* edit = qobject_cast<QLineEdit*>(field)) edit->setText(text);
        if (auto* list = qobject_cast<QComboBox*>(field)) list->setCurrentIndex(std::max(0, list->findData(text)));
    }
    const auto [level, owners] = keyValueOf(setup.shard, ':');
    m_shard->setCurrentIndex(std::max(0, m_shard->findData(words(level))));
    m_owners->setText(owners ? words(*owners).section(u'=', 1) : QString());
    const ModelNumbers model = ModelNumbers::of(setup);
    m_layers->setValue(model.layers);
    m_hidden->setValue(model.hidden);
    m_heads->setValue(model.heads);
    m_sequence->setValue(model.sequence);
    m_queue->setCurrentIndex(setup.slurm.empty() ? 0 : 1);
    check();
}

void RecordDialog::setHosts(const QStringList& names)
{
    const QSignalBlocker quiet(m_host);
    const QString chosen =
        m_host->currentData().toString().isEmpty() ? words(m_shown.host) : m_host->currentData().toString();
    while (m_host->count() > 1) m_host->removeItem(1);
    for (const QString& name : names) m_host->addItem(name, name);
    m_host->setCurrentIndex(std::max(0, m_host->findData(chosen)));
    check();
}

Setup RecordDialog::setup() const
{
    std::optional<SetupFault> ignored;
    return read(ignored);
}

Setup RecordDialog::read(std::optional<SetupFault>& unread) const
{
    Setup s = m_shown;
    s.schedules.clear();
    s.given.clear();
    for (int i = 0; i < m_schedules->count(); ++i) {
        const QListWidgetItem* item = m_schedules->item(i);
        if (item->checkState() != Qt::Checked) continue;
        const QString parameters = item->data(parametersRole).toString();
        s.schedules.push_back(
            (item->data(Qt::UserRole).toString() + (parameters.isEmpty() ? QString() : u':' + parameters))
                .toStdString());
    }
    if (const QString file = m_scheduleFile->text().trimmed(); !file.isEmpty()) s.schedules = {file.toStdString()};
    const Setup usual;
    for (const SetupKey& key : setupKeys()) {
        const QWidget* field = findChild<QWidget*>(words(key.name()));
        QString text;
        if (const auto* box = qobject_cast<const QSpinBox*>(field)) text = QString::number(box->value());
        if (const auto* edit = qobject_cast<const QLineEdit*>(field)) text = edit->text().trimmed();
        if (const auto* list = qobject_cast<const QComboBox*>(field)) text = list->currentData().toString();
        if (field == nullptr || field == m_schedules) continue;
        if (!key.form.starts_with("FILE") && key.commas()) text.remove(u' ');
        const std::string value = text.isEmpty() ? textOf(usual, key) : text.toStdString();
        if (const auto set = setKey(s, key, value); !set && !unread) unread = faultOf(set.error(), words(key.name()));
    }
    const std::string owners = m_owners->text().remove(u' ').toStdString();
    if (s.shard != "none" && !owners.empty()) s.shard += owners == "layer" ? ":by=layer" : ":shares=" + owners;
    ModelNumbers model = ModelNumbers::of(m_shown);
    model.layers = m_layers->value();
    model.hidden = m_hidden->value();
    model.heads = m_heads->value();
    model.sequence = m_sequence->value();
    s.model = model.text();
    if (m_queue->currentData().toString().isEmpty())
        s.slurm.clear();
    else if (s.slurm.empty())
        s.slurm = {"nodes=1"};
    return s;
}

void RecordDialog::setTargets(const QStringList& files, const QString& newFile)
{
    m_newFile = newFile;
    m_target->clear();
    for (const QString& file : files) m_target->addItem(QFileInfo(file).fileName(), file);
    m_target->addItem(u"a new file: %1"_s.arg(QFileInfo(newFile).fileName()), newFile);
    for (int i = 0; i < m_target->count(); ++i) m_target->setItemData(i, m_target->itemData(i), Qt::ToolTipRole);
    check();
}

void RecordDialog::setBackends(const QVector<TrainingBackend>& backends)
{
    for (const TrainingBackend& one : backends)
        if (m_backend->findData(one.name) < 0) m_backend->addItem(one.title, one.name);
}

void RecordDialog::setDevices(const QVector<TrainingDevice>& devices)
{
    QString tips;
    for (int i = 0; i < m_backend->count(); ++i) {
        const QString backend = m_backend->itemData(i).toString();
        if (backend.isEmpty() || devices.isEmpty()) continue; // the processor; nothing is known
        QStringList names, reasons;
        for (const TrainingDevice& device : devices) {
            if (device.backend != backend) continue;
            if (device.reason.isEmpty())
                names << device.name;
            else
                reasons << (device.name.isEmpty() ? device.reason : u"%1: %2"_s.arg(device.name, device.reason));
        }
        if (names.isEmpty() && reasons.isEmpty()) reasons << u"stagewright was built without them"_s;
        m_whyUnusable[backend] = names.isEmpty() ? reasons.join(u"; "_s) : QString();
        const QString tip = names.isEmpty() ? u"No usable GPU: %1"_s.arg(m_whyUnusable[backend]) : names.join(u'\n');
        m_backend->setItemData(i, tip, Qt::ToolTipRole);
        tips += u'\n' + tip;
    }
    if (!devices.isEmpty()) m_backend->setToolTip(u"Device that the ranks compute on."_s + tips);
    check();
}

void RecordDialog::setMeant(QWidget* field, bool meant)
{
    field->setEnabled(meant);
    field->setVisible(meant);
    for (QLabel* label : findChildren<QLabel*>())
        if (label->buddy() == field) label->setVisible(meant);
}

// Only what applies to the engine and the place.
void RecordDialog::showPlace(const Setup& s)
{
    const bool ownModel = !s.torch() || s.modelFile.empty();
    for (QWidget* field : std::initializer_list<QWidget*>{m_python, m_modelFile}) setMeant(field, s.torch());
    setMeant(m_ranksAs, !s.torch());
    setMeant(m_slurm, !s.slurm.empty());
    const bool several = s.replicas > 1;
    for (QWidget* field : std::initializer_list<QWidget*>{m_shard, m_reduce, m_replicaBatch, m_cut})
        setMeant(field, several);
    setMeant(m_owners, several && s.shard != "none");
    setMeant(m_gather, several && s.shard.starts_with("weights"));
    for (QWidget* field : m_conditions) setMeant(field, !s.torch());
    for (QWidget* field : std::initializer_list<QWidget*>{m_layers, m_hidden, m_heads, m_sequence, m_dataFile})
        field->setEnabled(ownModel);
}

// GPU settings are hidden for the processor and vice versa; the sharing mode states what it can and can't show.
void RecordDialog::showDevice(const Setup& s)
{
    const bool gpu = !s.backend.empty();
    for (QWidget* field : std::initializer_list<QWidget*>{m_devices, m_precision, m_sharing, m_transport, m_clock})
        setMeant(field, !s.torch() && (field == m_precision || gpu == (field != m_clock)));
    if (auto* precisions = qobject_cast<QStandardItemModel*>(m_precision->model()))
        precisions->item(m_precision->findData(u"tf32"_s))->setEnabled(gpu);
    QString meaning = u"Queues where each rank has its own GPU, otherwise serialised."_s;
    if (s.sharing == "queues")
        meaning = u"Side by side: real waits and overlap. Ranks on one GPU slow each other down: ops take longer "
                  "than on a GPU each."_s;
    if (s.sharing == "partitions")
        meaning = u"An equal part of the multiprocessors for each rank: real waits, no interference between ranks. "
                  "Ops are slower than on a whole GPU; memory bandwidth is still shared."_s;
    if (s.sharing == "serialised")
        meaning = u"One op at a time: exact op times on a whole GPU, placed as if each rank had its own. Contention "
                  "and real overlap don't show."_s;
    m_sharingMeaning->setText(meaning);
    m_sharingMeaning->setVisible(gpu && !s.torch());
    int needed = layout()->totalHeightForWidth(width()); // texts are of several lines
    if (const QScreen* at = screen()) needed = std::min(needed, at->availableGeometry().height());
    // its fields scroll: it needs no more than the window that it is over
    if (parentWidget() != nullptr) needed = std::min(needed, std::max(600, parentWidget()->window()->height()));
    if (needed > height()) resize(width(), needed);
}

QString RecordDialog::targetFile() const { return m_target->currentData().toString(); }

bool RecordDialog::targetIsNew() const { return targetFile() == m_newFile; }

void RecordDialog::setProgram(const QString& program)
{
    m_program = program;
    check();
}

QString RecordDialog::faultText() const { return m_fault->text(); }

QWidget* RecordDialog::fieldNamed(const QString& name) const
{
    if (name == "schedule"_L1) return m_schedules;
    return findChild<QWidget*>(name);
}

void RecordDialog::check()
{
    if (m_start == nullptr) return; // still being built
    std::optional<SetupFault> fault;
    const Setup s = read(fault);
    const QSignalBlocker quiet(m_schedules);
    for (int i = 0; i < m_schedules->count(); ++i) {
        QListWidgetItem* item = m_schedules->item(i);
        const QString parameters = item->data(parametersRole).toString();
        item->setText(item->data(titleRole).toString() + (parameters.isEmpty() ? QString() : u"  "_s + parameters));
    }
    const bool own = !m_scheduleFile->text().trimmed().isEmpty();
    m_schedules->setEnabled(!own);
    for (QWidget* field :
         {static_cast<QWidget*>(m_ranks), static_cast<QWidget*>(m_microbatches), static_cast<QWidget*>(m_chunks)})
        field->setEnabled(!own);
    showPlace(s);
    showDevice(s);
    const QWidget* at = fault ? fieldNamed(fault->field) : nullptr;
    if (at != nullptr && !at->isEnabled()) fault.reset();
    if (!fault) fault = firstFault(s);
    const QString unusable = s.torch() || s.elsewhere() ? QString() : m_whyUnusable.value(words(s.backend));
    if (!fault && !unusable.isEmpty())
        fault = SetupFault{u"backend"_s, u"no usable GPU: %1; train on the processor"_s.arg(unusable)};
    at = fault ? fieldNamed(fault->field) : nullptr;
    for (QWidget* field : findChildren<QWidget*>()) {
        const bool marked = field == at;
        if (field->property("fault").toBool() == marked) continue;
        field->setProperty("fault", marked);
        field->style()->unpolish(field);
        field->style()->polish(field);
    }
    QString text = fault ? fault->message : QString();
    if (!fault && m_program.isEmpty())
        text =
            u"the program stagewright was not found beside this one or on PATH; build it, or set STAGEWRIGHT_PROGRAM"_s;
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    m_fault->setText(text);
    m_start->setEnabled(text.isEmpty());
    m_words->setText(fault ? QString() : inWords(s));
    const QString output = targetFile().isEmpty() ? u"run.stagewright"_s : QFileInfo(targetFile()).fileName();
    m_command->setText(commandLine(s, output));
}

} // namespace stagewright
